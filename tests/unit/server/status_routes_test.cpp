// Routes that tell how the server is, and those that act on all of it.

#include <set>

#include "support.h"

namespace vitrove::test {
namespace {

using testing::Fault;
using testing::FaultyStore;
using testing::StoreOp;

// A store whose state the test sets, whose health() can hang, and whose calls can fail.
class MoodyStore final : public EmbeddingStore {
 public:
  std::atomic<StoreState> state{StoreState::ready};
  std::atomic<StoreStatus> reads{StoreStatus::absent};
  std::atomic<StoreStatus> puts{StoreStatus::ok};
  mutable Gate gate;

  std::string_view name() const override { return "moody"; }
  StoreCapabilities capabilities() const override { return {}; }
  StoreHealth health() const override {
    gate.pass();
    StoreHealth health;
    health.state = state;
    health.detail = "redis://secret@10.0.0.1";
    health.bytes = 5;
    health.capacity = 7;
    health.entries = 3;
    return health;
  }
  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList>,
                                                        const StoreContext&) override {
    return std::vector<StoreResult>(keys.size(), {StoreStatus::absent});
  }
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList>, PutMode,
                                                        const StoreContext&) override {
    return std::vector<StoreResult>(keys.size(), {puts});
  }
  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext&) override {
    return std::vector<StoreResult>(keys.size(), {reads});
  }
};

double metric(TestServer& server, const std::string& sample) {
  const std::string text = "\n" + server.get("/metrics").body();
  const auto at = text.find("\n" + sample + " ");
  if (at == std::string::npos) {
    ADD_FAILURE() << "no " << sample << " in" << text;
    return -1;
  }
  return std::stod(text.substr(at + sample.size() + 2));
}

json stores_of(TestServer& server) { return server.get("/stats").parsed().at("stores"); }

// Who asks is answered after a fresh look at the stores, or, on a busy machine, from the last one.
bool health_becomes(TestServer& server, std::string_view status) {
  return eventually([&] { return server.get("/health").parsed().at("status") == status; });
}

TEST(StatusRoutes, HealthIsOkAndReadyIsReady) {
  TestServer server;
  EXPECT_TRUE(health_becomes(server, "ok"));
  EXPECT_EQ(server.get("/ready").status(), 200);
}

// B75, B49
TEST(StatusRoutes, AStoreThatIsDownIsDegradedAndStillReady) {
  const auto store = std::make_shared<MoodyStore>();
  TestServer server(small_config(), {store});
  EXPECT_TRUE(health_becomes(server, "ok"));
  store->state = StoreState::down;
  EXPECT_TRUE(health_becomes(server, "degraded"));
  const Reply health = server.get("/health");
  EXPECT_EQ(health.status(), 200);
  EXPECT_EQ(health.body().find("secret"), std::string::npos);
  EXPECT_EQ(server.get("/ready").status(), 200);
  store->state = StoreState::ready;
  EXPECT_TRUE(health_becomes(server, "ok"));
}

TEST(StatusRoutes, HealthAnswersWhileAStoreDoesNot) {
  const auto store = std::make_shared<MoodyStore>();
  store->gate.close();
  TestServer server(small_config(), {store});
  ASSERT_TRUE(store->gate.wait_for_waiting(1));
  EXPECT_EQ(server.get("/health").status(), 200);
  EXPECT_EQ(server.get("/ready").status(), 200);
  store->gate.open();
}

// B75
TEST(StatusRoutes, AStuckEncoderMakesReadyFailAndHealthNot) {
  ServerConfig config = small_config();
  config.stall_timeout = std::chrono::milliseconds(20);
  TestServer server(config);
  server.parts.encoder->gate.close();
  auto stuck = server.start_encode({png_url(1)});
  ASSERT_TRUE(eventually([&] { return server.get("/ready").status() == 503; }));
  EXPECT_EQ(server.get("/health").status(), 200);
  server.parts.encoder->gate.open();
  EXPECT_EQ(stuck.get().status(), 200);
  EXPECT_TRUE(eventually([&] { return server.get("/ready").status() == 200; }));
}

TEST(StatusRoutes, HealthGenerateReallyEncodes) {
  TestServer server;
  EXPECT_EQ(server.get("/health_generate").status(), 200);
  EXPECT_EQ(server.get("/health_generate").status(), 200);
  EXPECT_EQ(server.parts.encoder->items, 2);
  server.parts.encoder->set_before([] { throw Error(ErrorCode::internal, "broken"); });
  EXPECT_EQ(server.get("/health_generate").status(), 500);
}

// B74
TEST(StatusRoutes, MetricsTellExactlyWhatHappened) {
  const auto store = memory_store();
  {
    TestServer writer(small_config(), {store});
    for (std::uint32_t seed = 0; seed < 4; ++seed) writer.encode({png_url(seed)});
    ASSERT_TRUE(
        writer.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  TestServer server(small_config(), {store});
  for (std::uint32_t seed = 0; seed < 10; ++seed) server.encode({png_url(seed)});
  for (std::uint32_t seed = 0; seed < 3; ++seed) server.encode({png_url(seed)});
  server.encode("bad");
  server.get("/health");
  server.get("/health_generate");
  server.get("/metrics");
  // What is still on its way to a store is pinned.
  ASSERT_TRUE(server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  const auto lookups = [&](const std::string& result) {
    return metric(server, R"(vitrove_lookups_total{modality="image",result=")" + result + R"("})");
  };
  EXPECT_EQ(lookups("local"), 3);
  EXPECT_EQ(lookups("joined"), 0);
  EXPECT_EQ(lookups("store"), 4);
  EXPECT_EQ(lookups("miss"), 6);
  EXPECT_EQ(metric(server, "vitrove_encoder_items_total"), 6);
  EXPECT_EQ(metric(server, R"(vitrove_requests_total{code="200",route="/encode"})"), 13);
  EXPECT_EQ(metric(server, R"(vitrove_requests_total{code="400",route="/encode"})"), 1);
  EXPECT_EQ(metric(server, R"(vitrove_entries{state="ready"})"), 10);
  EXPECT_EQ(metric(server, R"(vitrove_entries{state="filling"})"), 0);
  EXPECT_EQ(metric(server, R"(vitrove_pool_bytes{state="pinned"})"), 0);
  EXPECT_EQ(metric(server, R"(vitrove_request_seconds_count{route="/encode"})"), 14);
}

TEST(StatusRoutes, MetricsHaveTheNamesThatAreDocumented) {
  TestServer server(small_config(), {memory_store()});
  server.encode({png_url(1)});
  ASSERT_TRUE(server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  std::set<std::string> names;
  std::istringstream lines(server.get("/metrics").body());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) names.insert(line.substr(7, line.find(' ', 7) - 7));
  }
  const std::set<std::string> documented = {"vitrove_lookups_total",
                                            "vitrove_encoder_items_total",
                                            "vitrove_encoder_seconds_total",
                                            "vitrove_encode_seconds_saved_total",
                                            "vitrove_store_ops_total",
                                            "vitrove_store_errors_total",
                                            "vitrove_store_seconds",
                                            "vitrove_rejected_values_total",
                                            "vitrove_evictions_total",
                                            "vitrove_pool_bytes",
                                            "vitrove_entries",
                                            "vitrove_store_pending",
                                            "vitrove_request_seconds",
                                            "vitrove_puts_dropped_total",
                                            "vitrove_puts_skipped_total",
                                            "vitrove_claims_total",
                                            "vitrove_requests_total"};
  EXPECT_EQ(names, documented) << "all of them, from the first request on";
}

// A value of more than all staging pages cannot wait for its put without a pool.
TEST(StatusRoutes, PutsThatWereDroppedAreSeen) {
  ServerConfig config = small_config();
  config.pool_size = 0;
  TestServer server(config, {memory_store()}, false,
                    std::make_shared<TestEncoder>("stub:dim=4096,tokens=2048,seed=1"));
  EXPECT_EQ(metric(server, "vitrove_puts_dropped_total"), 0);
  EXPECT_EQ(server.encode({png_url(1)}).status(), 200);
  EXPECT_EQ(metric(server, "vitrove_puts_dropped_total"), 1);
}

TEST(StatusRoutes, StoreFaultsAreErrorsAndNotMisses) {
  const auto faulty = std::make_shared<FaultyStore>(memory_store());
  faulty->add({.op = StoreOp::put, .fault = Fault::error});
  TestServer server(small_config(), {faulty});
  server.encode({png_url(1)});
  ASSERT_TRUE(server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  const json stats = server.get("/stats").parsed();
  EXPECT_GE(stats.at("stores")[0].at("put").at("errors").get<int>(), 1);
  EXPECT_NE(server.get("/metrics").body().find("vitrove_store_errors_total{"), std::string::npos);
}

TEST(StatusRoutes, StatsAndThePublicSubset) {
  const auto store = std::make_shared<MoodyStore>();
  TestServer server(small_config(), {store});
  server.encode({png_url(1)});
  server.encode({png_url(1)});
  const json stats = server.get("/stats").parsed();
  EXPECT_EQ(stats.at("lookups").at("image").at("local"), 1);
  EXPECT_EQ(stats.at("encoder").at("items"), 1);
  EXPECT_EQ(stats.at("model").at("dim"), 64);
  EXPECT_EQ(stats.at("pool").at("entries"), 1);
  const Reply status = server.get("/status.json");
  EXPECT_EQ(status.parsed().at("lookups").at("local"), 1);
  EXPECT_EQ(status.parsed().at("stores")[0].at("name"), stats.at("stores")[0].at("name"));
  for (const auto* private_word : {"secret", "10.0.0.1", "fingerprint"}) {
    EXPECT_EQ(status.body().find(private_word), std::string::npos);
  }
}

TEST(StatusRoutes, StatsTellWhatIsHeldAndWhatItIsWorth) {
  TestServer server;
  server.encode({png_url(1)});
  server.encode({png_url(2)});
  for (int i = 0; i < 6; ++i) server.encode({png_url(2)});
  const json stats = server.get("/stats").parsed();
  ASSERT_EQ(stats.at("models").size(), 1u) << stats.dump(1);
  const json line = stats.at("models")[0];
  EXPECT_EQ(line.at("modality"), "image");
  EXPECT_EQ(line.at("model"), stats.at("model").at("fingerprint"));
  EXPECT_EQ(line.at("entries"), 2);
  EXPECT_EQ(line.at("lookups").at("local"), 6);
  EXPECT_EQ(line.at("bytes"), stats.at("pool").at("used_bytes"));
  EXPECT_GT(line.at("waste_bytes"), 0);
  EXPECT_EQ(line.at("runs_per_entry"), 1.0);
  EXPECT_GE(line.at("oldest_age_seconds"), line.at("mean_age_seconds"));
  EXPECT_EQ(line.at("saved_seconds"), stats.at("saved_seconds"));
  for (const auto* window : {"1m", "10m", "60m"}) {
    EXPECT_EQ(line.at("hit_ratio").at(window), 0.75) << window;
    EXPECT_EQ(stats.at("hit_ratio").at(window), 0.75) << window;
  }
  ASSERT_EQ(stats.at("top_keys").size(), 1u) << "the other was never hit";
  const json best = stats.at("top_keys")[0];
  EXPECT_EQ(best.at("key"), server.encode({png_url(2)}).parsed().at("items")[0].at("key"));
  EXPECT_EQ(best.at("hits"), 6);
  EXPECT_EQ(server.get("/status.json").parsed().at("hit_ratio").at("1m"), 7.0 / 9);
}

TEST(StatusRoutes, NoLookupsMakeNoRatio) {
  TestServer server;
  const json stats = server.get("/stats").parsed();
  EXPECT_TRUE(stats.at("models").empty());
  EXPECT_TRUE(stats.at("hit_ratio").at("1m").is_null());
  EXPECT_TRUE(server.get("/status.json").parsed().at("hit_ratio").at("60m").is_null());
}

// B49
TEST(StatusRoutes, StatsTellHowEachStoreReallyIs) {
  const auto store = std::make_shared<MoodyStore>();
  store->state = StoreState::degraded;
  TestServer server(small_config(), {store});
  EXPECT_TRUE(health_becomes(server, "degraded"));  // after a look
  ASSERT_TRUE(eventually([&] { return stores_of(server)[0].at("state") == "degraded"; }));
  const json seen = stores_of(server)[0];
  EXPECT_EQ(seen.at("detail"), "redis://secret@10.0.0.1");
  EXPECT_EQ(seen.at("bytes"), 5);
  EXPECT_EQ(seen.at("capacity"), 7);
  EXPECT_EQ(seen.at("entries"), 3);
  EXPECT_EQ(server.get("/status.json").parsed().at("stores")[0].at("state"), "degraded");
  store->state = StoreState::ready;
  EXPECT_TRUE(health_becomes(server, "ok"));
  EXPECT_EQ(stores_of(server)[0].at("state"), "ready");
}

// B50: what an operator reads of a store that is well by its own account, while its calls fail.
TEST(StatusRoutes, StatsSayFirstThatAStoreIsPausedAndWhatToDo) {
  const auto store = std::make_shared<MoodyStore>();
  TestServer server(small_config(), {store});
  EXPECT_TRUE(health_becomes(server, "ok"));
  std::uint32_t seed = 0;
  const auto words_once = [&](const char* breaker) {
    const bool is_open = eventually([&] {
      server.encode({png_url(seed++)});
      return stores_of(server)[0].at(breaker).get<bool>();
    });
    EXPECT_TRUE(is_open) << breaker;
    return stores_of(server)[0].at("detail").get<std::string>();
  };
  constexpr std::string_view rest =
      " fail or do not come back; tried again every few seconds. `vitrove doctor URL` says what is "
      "wrong. By itself: redis://secret@10.0.0.1";
  store->puts = StoreStatus::no_space;
  EXPECT_EQ(words_once("put_breaker_open"), "paused, since its puts" + std::string(rest));
  store->reads = StoreStatus::timeout;
  const std::string both = words_once("breaker_open");
  EXPECT_TRUE(both.starts_with("paused, since its reads")) << both;
  EXPECT_TRUE(both.ends_with(rest)) << both;
  EXPECT_TRUE(eventually([&] {
    server.get("/health");
    return stores_of(server)[0].at("state") == "down";
  }));
  EXPECT_EQ(server.get("/status.json").body().find("10.0.0.1"), std::string::npos);
}

TEST(StatusRoutes, StatsAnswerWhileAStoreDoesNot) {
  const auto store = std::make_shared<MoodyStore>();
  store->gate.close();
  TestServer server(small_config(), {store});
  ASSERT_TRUE(store->gate.wait_for_waiting(1));
  EXPECT_EQ(server.get("/stats").status(), 200);
  store->gate.open();
}

TEST(StatusRoutes, ThePageForPeopleLoadsNothingFromElsewhere) {
  TestServer server;
  const Reply page = server.get("/");
  EXPECT_EQ(page.status(), 200);
  EXPECT_TRUE(page.response.content_type.starts_with("text/html"));
  EXPECT_NE(page.body().find("status.json"), std::string::npos);
  EXPECT_EQ(page.body().find("http://"), std::string::npos);
  EXPECT_EQ(page.body().find("https://"), std::string::npos);
  EXPECT_NE(page.body().find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(StatusRoutes, OpenRoutesNeedNoKeyAndTheOthersDo) {
  ServerConfig config = small_config();
  config.api_keys = {"key"};
  TestServer server(config);
  for (const auto* path : {"/health", "/ready", "/metrics", "/", "/status.json"}) {
    EXPECT_EQ(server.get(path).status(), 200) << path;
  }
  for (const auto* path : {"/stats", "/health_generate", "/embeddings/x"}) {
    const Reply refused = server.get(path);
    EXPECT_EQ(refused.status(), 401) << path;
    EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
  }
  EXPECT_EQ(server.post("/flush", nullptr).status(), 401);
  EXPECT_EQ(server.get("/stats", {"key"}).status(), 200);
}

TEST(StatusRoutes, BeyondLoopbackAdminRoutesAreShutWithoutAnAdminKey) {
  TestServer server(small_config(), {}, /*beyond_loopback=*/true);
  EXPECT_EQ(server.get("/stats").status(), 403);
  EXPECT_EQ(server.post("/flush", nullptr).status(), 403);
  EXPECT_EQ(server.post("/reload", {{"encoder", "stub:"}}).status(), 403);
  EXPECT_EQ(server.encode({png_url(1)}).status(), 200);
}

TEST(StatusRoutes, UnknownRoutesAndMethodsAreJsonErrors) {
  TestServer server;
  const Reply nowhere = server.get("/nowhere");
  EXPECT_EQ(nowhere.status(), 404);
  EXPECT_EQ(nowhere.error().size(), 4U);
  const Reply put = call(server.core.handler(), "PUT", "/encode");
  EXPECT_EQ(put.status(), 405);
  EXPECT_EQ(put.error().size(), 4U);
  EXPECT_EQ(put.header("Allow"), "POST, OPTIONS");
  const Reply options = call(server.core.handler(), "OPTIONS", "/embeddings/x");
  EXPECT_EQ(options.status(), 204);
  EXPECT_EQ(options.header("Allow"), "GET, HEAD, DELETE, OPTIONS");
}

// --- admin -------------------------------------------------------------------------------------

std::uint64_t removed(const Reply& reply, const std::string& tier) {
  EXPECT_EQ(reply.status(), 200) << reply.body();
  const json body = reply.parsed();
  for (const json& entry : body.at("tiers")) {
    if (entry.at("name").get<std::string>().starts_with(tier)) {
      return entry.at("removed").get<std::uint64_t>();
    }
  }
  ADD_FAILURE() << "no tier " << tier << " in " << reply.body();
  return 0;
}

// B76
TEST(FlushRoute, ScopesEmptyWhatTheyName) {
  TestServer server(small_config(), {memory_store()});
  const json items = json::array({png_url(1)});
  const auto settle = [&] {
    ASSERT_TRUE(
        server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  };
  server.encode(items);
  settle();
  EXPECT_EQ(removed(server.post("/flush?scope=local", nullptr), "pool"), 1U);
  EXPECT_EQ(server.sources(items), std::vector<std::string>{"store"});
  EXPECT_GE(removed(server.post("/flush?scope=store", nullptr), "memory"), 1U);
  EXPECT_EQ(server.sources(items), std::vector<std::string>{"local"});
  settle();
  server.post("/flush?scope=all", nullptr);
  EXPECT_EQ(server.sources(items), std::vector<std::string>{"encoded"});
}

TEST(FlushRoute, AnotherModelsValuesStayUnlessAllAreMeant) {
  const auto store = memory_store();
  TestServer foreign(small_config(), {store}, false,
                     std::make_shared<TestEncoder>("stub:dim=64,tokens=16,seed=9"));
  TestServer server(small_config(), {store});
  const json items = json::array({png_url(1)});
  for (TestServer* each : {&foreign, &server}) {
    each->encode(items);
    ASSERT_TRUE(each->parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  server.post("/flush?scope=all", nullptr);
  foreign.post("/flush?scope=local", nullptr);
  EXPECT_EQ(foreign.sources(items), std::vector<std::string>{"store"});
  server.post("/flush?scope=store&model=*", nullptr);
  foreign.post("/flush", nullptr);
  EXPECT_EQ(foreign.sources(items), std::vector<std::string>{"encoded"});
}

TEST(FlushRoute, OfThePoolDoesNotWaitBehindStoresThatHang) {
  const auto store = std::make_shared<FaultyStore>(memory_store());
  store->add({.op = StoreOp::list, .fault = Fault::hold_before});
  TestServer server(small_config(), {store});
  server.encode({png_url(1)});
  std::vector<std::future<Reply>> hanging;
  for (int i = 0; i < 4; ++i) {
    hanging.push_back(start_call(server.core.handler(), "POST", "/flush?scope=store"));
  }
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  EXPECT_EQ(removed(server.post("/flush?scope=local", nullptr), "pool"), 1U);
  EXPECT_EQ(server.get("/health_generate").status(), 200) << "nor does a probe";
  store->heal();
  for (auto& flush : hanging) EXPECT_EQ(flush.get().status(), 200);
}

TEST(DeleteRoute, KeepsNobodyFromEncodingWhileAStoreHangs) {
  const auto store = std::make_shared<FaultyStore>(memory_store());
  store->add({.op = StoreOp::remove, .fault = Fault::hold_before});
  TestServer server(small_config(), {store});
  std::vector<std::future<Reply>> hanging;
  for (int i = 0; i < 40; ++i) {
    const std::string key = EmbeddingKey{sha256(std::to_string(i))}.text();
    hanging.push_back(start_call(server.core.handler(), "DELETE", "/embeddings/" + key));
  }
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  auto encoding = std::async(std::launch::async, [&] { server.encode({png_url(1)}); });
  EXPECT_EQ(encoding.wait_for(patience), std::future_status::ready);
  store->heal();
  encoding.get();
  for (auto& one : hanging) EXPECT_EQ(one.get().status(), 404);
}

TEST(FlushRoute, RefusesWhatItDoesNotKnow) {
  TestServer server;
  EXPECT_EQ(server.post("/flush?scope=everything", nullptr).status(), 400);
  EXPECT_EQ(server.post("/flush?model=mine", nullptr).status(), 400);
  EXPECT_EQ(server.post("/flush?scop=all", nullptr).status(), 400);
  EXPECT_EQ(call(server.core.handler(), "GET", "/flush").status(), 405);
}

// B38
TEST(ReloadRoute, SwapsTheModelAndItsKeys) {
  TestServer server;
  const json items = json::array({png_url(1)});
  const json before = server.encode(items).parsed();
  const Reply reload = server.post("/reload", {{"encoder", "stub:dim=64,tokens=16,seed=2"}});
  EXPECT_EQ(reload.status(), 200);
  const json after = server.encode(items).parsed();
  EXPECT_EQ(after.at("items")[0].at("source"), "encoded");
  EXPECT_NE(after.at("items")[0].at("key"), before.at("items")[0].at("key"));
  EXPECT_EQ(server.get("/stats").parsed().at("model").at("fingerprint"),
            reload.parsed().at("fingerprint"));
}

TEST(ReloadRoute, KeepsTheOldModelWhenTheNewOneIsBad) {
  TestServer server;
  server.encode({png_url(1)});
  EXPECT_EQ(server.post("/reload", {{"encoder", "stub:wings=2"}}).status(), 400);
  for (const json& body : {json(nullptr), json::array(), json{{"encoder", 1}},
                           json{{"encoder", ""}}, json{{"encoder", "stub:"}, {"more", 1}}}) {
    EXPECT_EQ(server.post("/reload", body).status(), 400) << body;
  }
  EXPECT_EQ(server.sources(json::array({png_url(1)})), std::vector<std::string>{"local"});
}

}  // namespace
}  // namespace vitrove::test
