// POST /encode and the routes by key, as plain requests.

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "base/little_endian.h"
#include "support.h"

namespace vitrove::test {
namespace {

struct Safetensors {
  explicit Safetensors(const std::string& body) {
    const auto bytes = std::as_bytes(std::span(body));
    const auto length = load_le<std::uint64_t>(bytes.data());
    EXPECT_EQ(length % 8, 0U);
    header = json::parse(body.substr(8, length));
    data = body.substr(8 + length);
    metadata = json::parse(header.at("__metadata__").at("vitrove").get<std::string>());
  }
  json header;
  json metadata;
  std::string data;
};

Safetensors tensors(const Reply& reply) {
  EXPECT_EQ(reply.status(), 200) << reply.body().substr(0, 500);
  return Safetensors(reply.body());
}

const json as_safetensors = {{"return", "safetensors"}};

TEST(EncodeRoute, AnswersWithMetadataInRequestOrder) {
  TestServer server;
  server.encode({png_url(2)});
  const Reply reply = server.encode({png_url(1), png_url(2)},
                                    {{"req_id", "mine"}, {"num_parts", 3}, {"part_idx", 2}});
  ASSERT_EQ(reply.status(), 200) << reply.body();
  const json body = reply.parsed();
  EXPECT_EQ(body.at("req_id"), "mine");
  EXPECT_EQ(body.at("num_parts"), 3);
  EXPECT_EQ(body.at("part_idx"), 2);
  EXPECT_EQ(body.at("embedding_len"), 32);
  EXPECT_EQ(body.at("embedding_dim"), 64);
  EXPECT_EQ(body.at("embedding_size"), 32 * 64 * 4);
  EXPECT_EQ(body.at("dtype"), "float32");
  const json& items = body.at("items");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].at("source"), "encoded");
  EXPECT_EQ(items[1].at("source"), "local");
  EXPECT_EQ(items[0].at("offset"), 0);
  EXPECT_EQ(items[1].at("offset"), 16);
  for (const json& item : items) {
    EXPECT_TRUE(EmbeddingKey::parse(item.at("key").get<std::string>()));
    EXPECT_EQ(item.at("modality"), "image");
    EXPECT_EQ(item.at("tokens"), 16);
    EXPECT_EQ(item.at("grid"), (json{1, 2, 2}));
    EXPECT_TRUE(item.at("encode_ms").is_number());
  }
  EXPECT_EQ(reply.response.note.items, 2U);
  EXPECT_EQ(reply.response.note.sources, "encoded:1 local:1");
}

// B28
TEST(EncodeRoute, AHitDiffersFromAMissInItsSourceAlone) {
  const auto store = memory_store();
  std::vector<json> replies;
  std::vector<std::string> data;
  for (int instance = 0; instance < 2; ++instance) {
    TestServer server(small_config(), {store});
    for (int i = 0; i < 2; ++i) {
      const auto whole =
          tensors(server.encode({png_url(1)}, {{"return", "safetensors"}, {"req_id", "same"}}));
      replies.push_back(whole.metadata);
      data.push_back(whole.data);
    }
    ASSERT_TRUE(
        server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  const std::string expected[] = {"encoded", "local", "store", "local"};
  for (std::size_t i = 0; i < replies.size(); ++i) {
    EXPECT_EQ(replies[i].at("items")[0].at("source"), expected[i]);
    replies[i].at("items")[0].erase("source");
    EXPECT_EQ(replies[i], replies[0]);
    EXPECT_EQ(data[i], data[0]);
  }
}

TEST(EncodeRoute, AnswersWithASafetensorsFile) {
  TestServer server;
  const auto whole = tensors(server.encode({png_url(1), png_url(2)}, as_safetensors));
  const json& tensor = whole.header.at("embedding");
  EXPECT_EQ(tensor.at("dtype"), "F32");
  EXPECT_EQ(tensor.at("shape"), (json{32, 64}));
  EXPECT_EQ(tensor.at("data_offsets"), (json{0, 32 * 64 * 4}));
  EXPECT_EQ(whole.data.size(), 32U * 64 * 4);
  EXPECT_EQ(whole.header.size(), 2U);
  auto golden = encode(*server.parts.service, {1, 2});
  EXPECT_EQ(whole.data, rows_of(golden[0].view) + rows_of(golden[1].view));
}

TEST(EncodeRoute, HalfPrecisionKeepsItsName) {
  for (const auto& [dtype, name] : {std::pair("float16", "F16"), std::pair("bfloat16", "BF16")}) {
    TestServer server(
        small_config(), {}, false,
        std::make_shared<TestEncoder>("stub:dim=32,tokens=4,dtype=" + std::string(dtype)));
    const auto whole = tensors(server.encode({png_url(1)}, as_safetensors));
    EXPECT_EQ(whole.header.at("embedding").at("dtype"), name);
    EXPECT_EQ(whole.data.size(), 4U * 32 * 2);
  }
}

TEST(EncodeRoute, MakesUpARequestIdWhenThereIsNone) {
  TestServer server;
  const Reply good = server.encode({png_url(1)});
  EXPECT_EQ(good.parsed().at("req_id"), good.response.req_id);
  EXPECT_TRUE(is_valid_req_id(good.response.req_id));
  const Reply bad = server.encode("x");
  EXPECT_TRUE(is_valid_req_id(bad.error().at("req_id").get<std::string>()));
}

// B77
TEST(EncodeRoute, ErrorsNameRequestItemCodeAndMessage) {
  TestServer server;
  const std::string broken = data_url(png(1).substr(0, 300));
  const Reply reply = server.encode({png_url(1), png_url(2), broken, png_url(3), png_url(4)},
                                    {{"req_id", "who"}, {"num_parts", 3}, {"part_idx", 1}});
  EXPECT_EQ(reply.status(), 400);
  EXPECT_EQ(reply.error().size(), 4U);
  EXPECT_EQ(reply.error().at("code"), "invalid_argument");
  EXPECT_EQ(reply.error().at("req_id"), "who");
  EXPECT_EQ(reply.error().at("item"), 2);
  EXPECT_FALSE(reply.error().at("message").get<std::string>().empty());
  EXPECT_TRUE(server.encode("x").error().at("item").is_null());
}

// B24
TEST(EncodeRoute, AClientsOwnIdIsRefused) {
  TestServer server;
  const Reply reply = server.encode({png_url(1)}, {{"uuid", "mine"}});
  EXPECT_EQ(reply.status(), 400);
  EXPECT_NE(reply.error().at("message").get<std::string>().find("uuid"), std::string::npos);
}

TEST(EncodeRoute, UnknownProcessorSettingsAreRefusedByName) {
  TestServer server;
  const Reply reply = server.encode({png_url(1)}, {{"mm_processor_kwargs", {{"wings", 2}}}});
  EXPECT_EQ(reply.status(), 400);
  EXPECT_EQ(reply.error().at("item"), 0);
}

// B87
TEST(EncodeRoute, NoErrorShowsAPathAddressOrForeignWord) {
  ServerConfig config = small_config();
  config.allowed_local_media_path = std::filesystem::temp_directory_path();
  TestServer server(config);
  server.parts.encoder->set_before([] { throw std::runtime_error("at 0xdeadbeef in /usr/lib/x"); });
  const std::string urls[] = {png_url(1), "file:///tmp/no-such-file", "http://10.1.2.3/x",
                              data_url("\x89PNG\r\n\x1a\n truncated"), "/etc/passwd"};
  for (const auto& url : urls) {
    const Reply reply = server.encode({url});
    EXPECT_GE(reply.status(), 400);
    const std::string message = reply.error().at("message");
    for (const auto* secret : {"0x", "/usr", "/tmp", "/etc", "10.1.2.3"}) {
      EXPECT_EQ(message.find(secret), std::string::npos) << message;
    }
  }
}

// B82: missing and forbidden are the same answer.
TEST(EncodeRoute, LocalFilesBelowTheAllowedFolderOnly) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("vitrove-server-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "in.png", std::ios::binary) << png(1);
  ServerConfig config = small_config();
  config.allowed_local_media_path = folder;
  {
    TestServer server(config);
    EXPECT_EQ(server.encode({"file://" + (folder / "in.png").string()}).status(), 200);
    const Reply missing = server.encode({"file://" + (folder / "out.png").string()});
    const Reply forbidden = server.encode({"file:///etc/passwd"});
    EXPECT_EQ(missing.status(), forbidden.status());
    EXPECT_EQ(missing.error().at("message"), forbidden.error().at("message"));
  }
  std::filesystem::remove_all(folder);
}

TEST(EncodeRoute, DigestsFollowTheSwitch) {
  const json digest = {{"digest", to_hex(sha256(png(1)))}};
  {
    TestServer server;
    EXPECT_EQ(server.encode(json::array({digest})).status(), 403);
  }
  ServerConfig config = small_config();
  config.trust_client_digests = true;
  TestServer server(config);
  EXPECT_EQ(server.encode(json::array({digest})).status(), 404);
  server.encode({png_url(1)});
  EXPECT_EQ(server.encode(json::array({digest})).status(), 200);
  EXPECT_EQ(server.encode({png_url(1)}, {{"hashes", {to_hex(sha256(png(1)))}}}).status(), 200);
  EXPECT_EQ(server.encode({png_url(1)}, {{"hashes", {to_hex(sha256(png(2)))}}}).status(), 400);
}

// B71
TEST(EncodeRoute, BeyondTheQueueIsAnsweredAtOnceWith429) {
  ServerConfig config = small_config();
  config.service_threads = 2;
  config.max_queue = 3;
  TestServer server(config);
  server.parts.encoder->gate.close();
  std::vector<std::future<Reply>> accepted;
  for (std::uint32_t i = 0; i < 5; ++i) accepted.push_back(server.start_encode({png_url(i)}));
  const Reply refused = server.encode({png_url(9)});
  EXPECT_EQ(refused.status(), 429);
  EXPECT_EQ(refused.error().at("code"), "queue_full");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(server.get("/health").status(), 200);
  EXPECT_EQ(server.get("/metrics").status(), 200);
  server.parts.encoder->gate.open();
  for (auto& future : accepted) {
    ASSERT_EQ(future.wait_for(patience), std::future_status::ready);
    EXPECT_EQ(future.get().status(), 200);
  }
}

TEST(EncodeRoute, WhatIsInThePoolIsAnsweredWhileTheQueueIsFull) {
  ServerConfig config = small_config();
  config.service_threads = 1;
  config.max_queue = 1;
  TestServer server(config);
  const std::string key = server.encode({png_url(1)}).parsed()["items"][0]["key"];
  server.parts.encoder->gate.close();
  auto running = server.start_encode({png_url(2)});
  ASSERT_TRUE(server.parts.encoder->gate.wait_for_waiting(1));
  auto queued = server.start_encode({png_url(3)});
  EXPECT_EQ(server.encode({png_url(4)}).status(), 429);
  EXPECT_EQ(server.sources(json::array({png_url(1)})), std::vector<std::string>{"local"});
  EXPECT_EQ(server.get("/embeddings/" + key).status(), 200);
  EXPECT_EQ(server.get("/embeddings/vt1-" + std::string(64, '0')).status(), 429);
  server.parts.encoder->gate.open();
  EXPECT_EQ(running.get().status(), 200);
  EXPECT_EQ(queued.get().status(), 200);
}

TEST(EncodeRoute, APoolHitDoesNotWaitBehindEncodes) {
  ServerConfig config = small_config();
  config.service_threads = 1;
  TestServer server(config);
  server.encode({png_url(1)});
  server.parts.encoder->gate.close();
  auto running = server.start_encode({png_url(2)});
  ASSERT_TRUE(server.parts.encoder->gate.wait_for_waiting(1));
  EXPECT_EQ(server.sources(json::array({png_url(1)})), std::vector<std::string>{"local"});
  EXPECT_EQ(tensors(server.encode({png_url(1)}, as_safetensors)).data.size(), 16U * 64 * 4);
  server.parts.encoder->gate.open();
  EXPECT_EQ(running.get().status(), 200);
}

TEST(EncodeRoute, QueuedRequestsAreAnsweredWhenTheServerStops) {
  ServerConfig config = small_config();
  config.service_threads = 1;
  TestServer server(config);
  server.parts.encoder->gate.close();
  auto running = server.start_encode({png_url(1)});
  ASSERT_TRUE(server.parts.encoder->gate.wait_for_waiting(1));
  auto queued = server.start_encode({png_url(2)});
  std::thread opener([&] {
    EXPECT_EQ(queued.wait_for(patience), std::future_status::ready);
    server.parts.encoder->gate.open();
  });
  server.core.stop();
  opener.join();
  EXPECT_EQ(queued.get().status(), 503);
  EXPECT_EQ(running.get().status(), 200);
}

TEST(EncodeRoute, WhileDrainingNewWorkIs503AndHealthGoesOn) {
  TestServer server;
  server.core.set_phase(Phase::leaving);
  EXPECT_EQ(server.get("/ready").status(), 503);
  EXPECT_EQ(server.encode({png_url(1)}).status(), 200);
  server.core.set_phase(Phase::draining);
  const Reply refused = server.encode({png_url(1)});
  EXPECT_EQ(refused.status(), 503);
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(server.get("/health").status(), 200);
  EXPECT_EQ(server.get("/metrics").status(), 200);
}

// B33, B69: replies may pin half of the pool; the rest is copied, up to a bound, then refused.
TEST(EncodeRoute, RepliesOnTheirWayNeverPinMoreThanHalfOfThePool) {
  ServerConfig config = small_config();
  config.pool_size = 64 * config.page_size;
  config.max_body_bytes = 1 << 20;
  config.max_inflight_bytes = 4 << 20;
  // One MiB an item, 4 MiB of pool: two are pinned, four are copied.
  TestServer server(config, {}, false,
                    std::make_shared<TestEncoder>("stub:dim=1024,tokens=256,seed=1"));
  std::vector<Reply> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(server.encode({png_url(1)}, as_safetensors));
    ASSERT_EQ(held.back().status(), 200);
    EXPECT_LE(server.parts.controller->stats().bytes_pinned, config.pool_size / 2);
  }
  EXPECT_EQ(server.core.replies().copied(), 4U << 20);
  const Reply refused = server.encode({png_url(1)}, as_safetensors);
  EXPECT_EQ(refused.status(), 503);
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(server.encode({png_url(1)}).status(), 200) << "metadata needs no pins";
  for (const auto& reply : held) EXPECT_EQ(tensors(reply).data, tensors(held[0]).data);
  held.clear();
  EXPECT_EQ(server.parts.controller->stats().bytes_pinned, 0U);
  EXPECT_EQ(server.core.replies().copied(), 0U);
  EXPECT_EQ(server.encode({png_url(1)}, as_safetensors).status(), 200);
}

// B74
TEST(EncodeRoute, AHitIsCountedOnceHoweverItsReplyIsMade) {
  ServerConfig config = small_config();
  config.pool_size = 64 * config.page_size;
  // One MiB an item, 4 MiB of pool: two replies are pinned, the others are copied.
  TestServer server(config, {}, false,
                    std::make_shared<TestEncoder>("stub:dim=1024,tokens=256,seed=1"));
  std::vector<Reply> held;
  held.push_back(server.encode({png_url(1)}, as_safetensors));
  const std::uint64_t saved_before = server.parts.controller->stats().saved_us;
  for (int i = 0; i < 5; ++i) held.push_back(server.encode({png_url(1)}, as_safetensors));
  ASSERT_GT(server.core.replies().copied(), 0U);
  EXPECT_EQ(server.encode({png_url(1)}).status(), 200);
  EXPECT_EQ(image_lookups(*server.parts.controller).local, 6U);
  EXPECT_EQ(image_lookups(*server.parts.controller).miss, 1U);
  const json item = server.encode({png_url(1)}).parsed().at("items")[0];
  const double cost_us = item.at("encode_ms").get<double>() * 1000;
  const std::uint64_t saved = server.parts.controller->stats().saved_us - saved_before;
  EXPECT_NEAR(static_cast<double>(saved), 7 * cost_us, 7);
}

TEST(EncodeRoute, RowsOfAPooledReplyAreNotCopied) {
  TestServer server;
  const Reply reply = server.encode({png_url(1)}, as_safetensors);
  const auto arena = const_cast<PagePool&>(server.parts.controller->pool()).arena();
  ASSERT_EQ(reply.response.parts.size(), 1U);
  const auto* rows = reply.response.parts[0].data();
  EXPECT_TRUE(rows >= arena.data() && rows < arena.data() + arena.size());
}

// --- by key ------------------------------------------------------------------------------------

std::string key_of(const Reply& reply) {
  return reply.parsed().at("items")[0].at("key").get<std::string>();
}

TEST(EmbeddingsRoute, GivesWhatIsInThePoolOrTheStores) {
  const auto store = memory_store();
  std::string key, data;
  {
    TestServer server(small_config(), {store});
    key = key_of(server.encode({png_url(1)}));
    const auto whole = tensors(server.get("/embeddings/" + key));
    data = whole.data;
    EXPECT_EQ(whole.metadata.at("items")[0].at("source"), "local");
    ASSERT_TRUE(
        server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  TestServer other(small_config(), {store});
  const auto whole = tensors(other.get("/embeddings/" + key));
  EXPECT_EQ(whole.metadata.at("items")[0].at("source"), "store");
  EXPECT_EQ(whole.metadata.at("items")[0].at("key"), key);
  EXPECT_EQ(whole.data, data);
  EXPECT_EQ(other.get("/embeddings/" + key + "?return=metadata").parsed().at("embedding_len"), 16);
}

// B74
TEST(EmbeddingsRoute, ReadingByKeyIsNoLookup) {
  TestServer server;
  const std::string path = "/embeddings/" + key_of(server.encode({png_url(1)}));
  const auto before = server.parts.controller->stats();
  EXPECT_EQ(server.get(path).status(), 200);
  EXPECT_EQ(server.get(path + "?return=metadata").status(), 200);
  EXPECT_EQ(image_lookups(*server.parts.controller).local, 0U);
  EXPECT_EQ(server.parts.controller->stats().saved_us, before.saved_us);
}

TEST(EmbeddingsRoute, UnknownAndMalformedKeysAreClientErrors) {
  TestServer server;
  EXPECT_EQ(server.get("/embeddings/vt1-" + std::string(64, '0')).status(), 404);
  EXPECT_EQ(server.get("/embeddings/vt1-short").status(), 400);
  EXPECT_EQ(server.get("/embeddings/..%2F..%2Fetc%2Fpasswd").status(), 404);
  EXPECT_EQ(server.get("/embeddings/").status(), 404);
  EXPECT_EQ(server.get("/embeddings/vt1-x?return=pickle").status(), 400);
}

TEST(EmbeddingsRoute, DeleteTakesItFromEveryTierAndSaysSo) {
  const auto store = memory_store();
  TestServer server(small_config(), {store});
  const std::string key = key_of(server.encode({png_url(1)}));
  ASSERT_TRUE(server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  const Reply removed = call(server.core.handler(), "DELETE", "/embeddings/" + key);
  ASSERT_EQ(removed.status(), 200) << removed.body();
  EXPECT_EQ(removed.parsed().at("tiers").size(), 2U);
  EXPECT_EQ(server.get("/embeddings/" + key).status(), 404);
  EXPECT_EQ(call(server.core.handler(), "DELETE", "/embeddings/" + key).status(), 404);
}

TEST(EmbeddingsRoute, WhatAStoreCannotRemoveIsNotSaidToBeAbsent) {
  const auto store = std::make_shared<testing::FaultyStore>(memory_store());
  TestServer server(small_config(), {store});
  const std::string path = "/embeddings/" + key_of(server.encode({png_url(1)}));
  ASSERT_TRUE(server.parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  store->add({.op = testing::StoreOp::remove, .status = StoreStatus::denied});
  const Reply half = call(server.core.handler(), "DELETE", path);
  EXPECT_EQ(half.status(), 200) << "the pool's is gone";
  EXPECT_EQ(half.parsed().at("tiers")[1].at("complete"), false);
  EXPECT_EQ(call(server.core.handler(), "DELETE", path).status(), 503);
  EXPECT_EQ(server.get(path).status(), 200);
  store->heal();
  EXPECT_EQ(call(server.core.handler(), "DELETE", path).status(), 200);
  EXPECT_EQ(call(server.core.handler(), "DELETE", path).status(), 404);
}

// B88
TEST(EmbeddingsRoute, ATenantSeesItsOwnEmbeddingsOnly) {
  const auto file =
      std::filesystem::temp_directory_path() / ("vitrove-tenants-" + std::to_string(::getpid()));
  std::ofstream(file) << "key-a a\nkey-b b\n";
  ServerConfig config = small_config();
  config.tenant_keys_file = file;
  config.admin_key = "boss";
  TestServer server(config, {memory_store()});
  std::filesystem::remove(file);
  const json items = json::array({png_url(1)});
  EXPECT_EQ(server.encode(items).status(), 401);
  const Reply of_a = server.encode(items, json::object(), {"key-a"});
  const Reply of_b = server.encode(items, json::object(), {"key-b"});
  EXPECT_EQ(of_a.parsed().at("items")[0].at("source"), "encoded");
  EXPECT_EQ(of_b.parsed().at("items")[0].at("source"), "encoded");
  EXPECT_EQ(server.encode(items, json::object(), {"key-a"}).parsed().at("items")[0].at("source"),
            "local");
  const std::string path = "/embeddings/" + key_of(of_a);
  EXPECT_EQ(server.get(path, {"key-a"}).status(), 200);
  EXPECT_EQ(server.get(path, {"boss"}).status(), 200);
  const Reply foreign = server.get(path, {"key-b"});
  const Reply absent = server.get("/embeddings/vt1-" + std::string(64, '0'), {"key-b"});
  EXPECT_EQ(foreign.status(), 404);
  EXPECT_EQ(foreign.error().at("message"), absent.error().at("message"));
  EXPECT_EQ(image_lookups(*server.parts.controller).local, 1U) << "readable by anybody in /metrics";
  EXPECT_EQ(call(server.core.handler(), "DELETE", path, {}, {"key-a"}).status(), 403);
  EXPECT_EQ(call(server.core.handler(), "DELETE", path, {}, {"boss"}).status(), 200);
}

}  // namespace
}  // namespace vitrove::test
