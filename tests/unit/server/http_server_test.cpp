// The server over real sockets: what HTTP/1.1 asks for, and clients that misbehave.

#include <vector>

#include "running_server.h"

namespace vitrove::test {
namespace {

TEST(HttpServer, AnswersSeveralRequestsOnOneConnection) {
  Running running;
  RawClient client(running.port());
  for (const auto* source : {"encoded", "local", "local"}) {
    client.send(encode_text({png_url(1)}));
    const RawReply reply = client.reply();
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.parsed().at("items")[0].at("source"), source);
    EXPECT_EQ(reply.header("X-Request-Id"), reply.parsed().at("req_id"));
    EXPECT_EQ(reply.header("Connection"), "keep-alive");
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Running running;
  // Before the first look at its stores a server calls itself degraded.
  ASSERT_TRUE(eventually(
      [&] { return get(running.port(), "/health").body.find(R"("ok")") != std::string::npos; }));
  RawClient client(running.port());
  std::string text;
  for (int i = 0; i < 5; ++i) {
    text += encode_text({png_url(1)}, {{"req_id", "r" + std::to_string(i)}});
    text += http_request("GET", "/health");
  }
  client.send(text);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.reply().parsed().at("req_id"), "r" + std::to_string(i));
    EXPECT_EQ(client.reply().parsed().at("status"), "ok");
  }
}

TEST(HttpServer, TakesChunkedBodies) {
  Running running;
  RawClient client(running.port());
  const std::string body = json{{"mm_items", json::array({png_url(1)})}}.dump();
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (std::size_t at = 0; at < body.size(); at += 1000) {
    const std::string piece = body.substr(at, 1000);
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    client.send(size + piece + "\r\n");
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.reply().status, 200);
  client.send(http_request("GET", "/health"));
  EXPECT_EQ(client.reply().status, 200);
}

TEST(HttpServer, SaysContinueToWhoAsksBeforeSending) {
  Running running;
  RawClient client(running.port());
  const std::string body = json{{"mm_items", json::array({png_url(1)})}}.dump();
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.reply().status, 100);
  client.send(body);
  EXPECT_EQ(client.reply().status, 200);
}

TEST(HttpServer, RefusesBeforeTheBodyIsSent) {
  ServerConfig config = socket_config();
  config.max_body_bytes = 4096;
  config.api_keys = {"key"};
  Running running(config);
  {
    RawClient client(running.port());
    client.send(
        "POST /encode HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        "Authorization: Bearer key\r\nContent-Length: 5000\r\n\r\n");
    const RawReply reply = client.reply();
    EXPECT_EQ(reply.status, 413);
    EXPECT_EQ(reply.parsed().at("error").size(), 4U);
    EXPECT_TRUE(client.is_closed());
  }
  RawClient client(running.port());
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n");
  EXPECT_EQ(client.reply().status, 401);
}

TEST(HttpServer, ARefusalReachesAClientThatIsStillSending) {
  ServerConfig config = socket_config();
  config.max_body_bytes = 100'000;
  Running running(config);
  {
    RawClient client(running.port());
    client.send(http_request("POST", "/encode", std::string(8'000'000, 'x')));
    EXPECT_EQ(client.reply().status, 413);
  }
  RawClient client(running.port());
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) client.send("4000\r\n" + std::string(0x4000, 'x') + "\r\n");
  EXPECT_EQ(client.reply().status, 413);
  EXPECT_EQ(get(running.port(), "/health").status, 200);
}

TEST(HttpServer, HeadHasTheLengthAndNoBody) {
  Running running;
  RawClient client(running.port());
  client.send(http_request("HEAD", "/health") + http_request("GET", "/ready"));
  const RawReply head = client.reply(/*has_body=*/false);
  EXPECT_EQ(head.status, 200);
  EXPECT_GT(std::stoi(head.header("Content-Length")), 0);
  EXPECT_EQ(client.reply().parsed().at("status"), "ready");
}

TEST(HttpServer, HonoursConnectionCloseAndHttp10) {
  Running running;
  {
    RawClient client(running.port());
    client.send(http_request("GET", "/health", {}, "Connection: close\r\n"));
    EXPECT_EQ(client.reply().header("Connection"), "close");
    EXPECT_TRUE(client.is_closed());
  }
  RawClient client(running.port());
  client.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpServer, MalformedRequestsAreJsonErrorsAndEndTheConnection) {
  Running running;
  const std::pair<std::string, int> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET /health HTTP/9.9\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: "
       "chunked\r\n\r\n",
       400},
      {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(40'000, 'x') + "\r\n\r\n", 431},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nGET /health "
       "HTTP/1.1\r\nHost: x\r\n\r\n",
       400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST /encode HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\n\r\n", 400},
      {"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
      {"POST /encode HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417},
  };
  for (const auto& [text, status] : cases) {
    RawClient client(running.port());
    client.send(text);
    const RawReply reply = client.reply();
    EXPECT_EQ(reply.status, status) << text.substr(0, 60);
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_EQ(reply.parsed().at("error").size(), 4U);
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_EQ(get(running.port(), "/health").status, 200);
}

// RFC 9112, section 2.2.
TEST(HttpServer, EmptyLinesBeforeARequestAreOverlooked) {
  Running running;
  const std::string request = http_request("GET", "/health");
  RawClient client(running.port());
  for (const std::string lines : {"\r\n", "\r\n\r\n", "\r\n\r\n\r\n"}) {
    client.send(lines + request);
    EXPECT_EQ(client.reply().status, 200);
  }
  client.send(encode_text({png_url(1)}) + "\r\n");
  EXPECT_EQ(client.reply().status, 200);
  client.send("\r");
  client.send("\n" + request);
  EXPECT_EQ(client.reply().status, 200);
  client.send("\r\nnonsense\r\n\r\n");
  EXPECT_EQ(client.reply().status, 400);
}

TEST(HttpServer, AParameterGivenTwiceIsTheClientsFault) {
  Running running;
  for (const std::string target : {"/flush?scope=store&scope=all", "/health?a=1&a=1"}) {
    RawClient client(running.port());
    client.send(http_request(target.starts_with("/flush") ? "POST" : "GET", target));
    const RawReply reply = client.reply();
    EXPECT_EQ(reply.status, 400) << target;
    EXPECT_EQ(reply.parsed().at("error").at("code"), "invalid_argument");
  }
}

TEST(HttpServer, GarbageAndSilenceHarmNobody) {
  Running running;
  RawClient silent(running.port());
  RawClient half(running.port());
  half.send("POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"mm_");
  RawClient garbage(running.port());
  garbage.send(std::string(100'000, '\x80'));
  EXPECT_EQ(get(running.port(), "/health").status, 200);
  EXPECT_EQ(get(running.port(), "/a%zz").status, 400);
}

TEST(HttpServer, RequestIdsOfTheHeaderAreEchoedWhenSane) {
  Running running;
  RawClient client(running.port());
  client.send(http_request("GET", "/nowhere", {}, "X-Request-Id: abc-1\r\n"));
  EXPECT_EQ(client.reply().parsed().at("error").at("req_id"), "abc-1");
  client.send(
      http_request("GET", "/nowhere", {}, "X-Request-Id: " + std::string(300, 'x') + "\r\n"));
  EXPECT_NE(client.reply().parsed().at("error").at("req_id"), std::string(300, 'x'));
}

TEST(HttpServer, AClientThatHasEndedSendingStillGetsItsAnswer) {
  Running running;
  encode(*running.parts.service, {1});
  for (const std::string& request : {http_request("GET", "/health"),
                                     http_request("GET", "/metrics"), encode_text({png_url(1)})}) {
    RawClient client(running.port());
    client.send(request);
    client.end_sending();
    EXPECT_EQ(client.reply().status, 200) << request.substr(0, 20);
    EXPECT_TRUE(client.is_closed());
  }
}

// --- leaving, being late, being slow -----------------------------------------------------------

TEST(HttpServer, AClientThatLeavesStopsItsWork) {
  ServerConfig config = socket_config();
  config.service_threads = 1;
  Running running(config);
  running.parts.encoder->gate.close();
  {
    RawClient client(running.port());
    client.send(encode_text({png_url(1)}));
    ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
  }
  // The encoder still stands at the gate, but the only service thread is free again.
  ASSERT_TRUE(eventually([&] { return running.parts.controller->stats().entries_filling == 0; }));
  RawClient other(running.port());
  other.send(http_request("GET", "/embeddings/vt1-" + std::string(64, '0')));
  EXPECT_EQ(other.reply().status, 404);
}

TEST(HttpServer, WhenTheLeadersConnectionIsCutFollowersAreAnswered) {
  Running running;
  running.parts.encoder->gate.close();
  RawClient leader(running.port());
  leader.send(encode_text({png_url(1)}));
  ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
  std::vector<RawClient> followers;
  for (int i = 0; i < 4; ++i) {
    followers.emplace_back(running.port());
    followers.back().send(encode_text({png_url(1)}));
  }
  leader.close();
  running.parts.encoder->gate.open();
  for (auto& follower : followers) EXPECT_EQ(follower.reply().status, 200);
}

TEST(HttpServer, ALateReplyIsA504AndTheConnectionGoesOn) {
  ServerConfig config = socket_config();
  config.request_timeout = std::chrono::seconds(2);  // to be late in the encoder, and not before
  Running running(config);
  running.parts.encoder->gate.close();
  RawClient client(running.port());
  client.send(encode_text({png_url(1)}, json::object(), "X-Request-Id: late\r\n"));
  const RawReply reply = client.reply();
  EXPECT_EQ(reply.status, 504);
  EXPECT_EQ(reply.parsed().at("error").at("code"), "deadline_exceeded");
  EXPECT_EQ(reply.parsed().at("error").at("req_id"), "late");
  running.parts.encoder->gate.open();
  EXPECT_TRUE(eventually([&] {
    RawClient again(running.port());
    again.send(encode_text({png_url(1)}));
    return again.reply().status == 200;
  }));
}

TEST(HttpServer, ABodyThatNeverComesIsA504) {
  ServerConfig config = socket_config();
  config.request_timeout = std::chrono::milliseconds(200);
  Running running(config);
  RawClient client(running.port());
  client.send("POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"mm_");
  EXPECT_EQ(client.reply().status, 504);
  EXPECT_TRUE(client.is_closed());
}

// B33
TEST(HttpServer, ASlowReaderGetsItsOwnBytesWhileOthersEvict) {
  ServerConfig config = socket_config();
  config.pool_size = std::uint64_t{56} << 20;  // three items
  Running running(config, std::make_shared<TestEncoder>(huge_rows));
  const json safetensors = {{"return", "safetensors"}};
  RawClient first(running.port());
  first.send(encode_text({png_url(0)}, safetensors));
  const std::string golden = first.reply().body;
  ASSERT_GE(golden.size(), huge_bytes);

  RawClient slow(running.port(), 4096);
  slow.send(encode_text({png_url(0)}, safetensors));
  EXPECT_TRUE(slow.has_input());
  ASSERT_TRUE(running.holds_pins());
  for (std::uint32_t seed = 1; seed < 10; ++seed) {
    RawClient client(running.port());
    client.send(encode_text({png_url(seed)}));
    ASSERT_EQ(client.reply().status, 200);
  }
  EXPECT_GE(running.parts.controller->stats().evictions_space, 7U);
  EXPECT_GE(running.pinned(), huge_bytes);
  // What stands before the rows tells the source, and is not the same.
  const std::string body = slow.reply().body;
  EXPECT_TRUE(body.ends_with(std::string_view(golden).substr(golden.size() - huge_bytes)));
}

TEST(HttpServer, AReaderThatStallsIsDroppedAndItsPinsComeBack) {
  ServerConfig config = socket_config();
  config.pool_size = std::uint64_t{128} << 20;
  config.send_stall_timeout = std::chrono::seconds(2);  // a busy machine stalls, too
  Running running(config, std::make_shared<TestEncoder>("stub:dim=1024,tokens=8192,seed=1"));
  RawClient stalled(running.port(), 4096);
  stalled.send(encode_text({png_url(1)}, {{"return", "safetensors"}}));
  EXPECT_TRUE(stalled.has_input());
  EXPECT_TRUE(running.pins_are_back());
  EXPECT_LT(stalled.reply().body.size(), std::size_t{32} << 20) << "cut, and not swallowed";
  EXPECT_EQ(running.parts.controller->stats().entries_ready, 1U);
}

TEST(HttpServer, ReadersThatLeaveGiveTheirPinsBack) {
  ServerConfig config = socket_config();
  config.pool_size = std::uint64_t{40} << 20;
  Running running(config, std::make_shared<TestEncoder>(huge_rows));
  encode(*running.parts.service, {0, 1});
  for (std::uint32_t round = 0; round < 12; ++round) {
    RawClient client(running.port(), 4096);
    client.send(encode_text({png_url(round % 2)}, {{"return", "safetensors"}}));
    client.read(1 + round * 20'000);
    ASSERT_TRUE(running.holds_pins());
    client.close();
    ASSERT_TRUE(running.pins_are_back());
  }
  running.parts.controller->check_invariants();
}

TEST(HttpServer, HitsByKeyAreServedFromThePool) {
  Running running(socket_config(), std::make_shared<TestEncoder>(large_rows));
  const auto items = encode(*running.parts.service, {1});
  RawClient client(running.port());
  for (int i = 0; i < 3; ++i) {
    client.send(http_request("GET", "/embeddings/" + items[0].key.text()));
    const RawReply reply = client.reply();
    ASSERT_EQ(reply.status, 200);
    EXPECT_TRUE(reply.body.ends_with(rows_of(items[0].view)));
  }
}

// --- limits ------------------------------------------------------------------------------------

// B71, B75
TEST(HttpServer, ABurstIsAnsweredToTheLastAndHealthStaysUp) {
  ServerConfig config = socket_config();
  config.service_threads = 2;
  config.max_queue = 4;
  Running running(config);
  running.parts.encoder->gate.close();
  std::vector<RawClient> clients;
  for (std::uint32_t i = 0; i < 60; ++i) {
    clients.emplace_back(running.port());
    clients.back().send(encode_text({png_url(i)}));
  }
  // Six are accepted; the other answers come while nothing can be encoded.
  EXPECT_EQ(get(running.port(), "/health").status, 200);
  std::thread opener([&] {
    EXPECT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
    EXPECT_TRUE(eventually([&] {
      return get(running.port(), "/metrics").body.find(R"(code="429",route="/encode"} 54)") !=
             std::string::npos;
    }));
    running.parts.encoder->gate.open();
  });
  int good = 0, refused = 0;
  for (auto& client : clients) {
    const RawReply reply = client.reply();
    good += reply.status == 200 ? 1 : 0;
    refused += reply.status == 429 && !reply.header("Retry-After").empty() ? 1 : 0;
  }
  opener.join();
  EXPECT_EQ(good, 6);
  EXPECT_EQ(refused, 54);
}

TEST(HttpServer, BodiesTogetherAreBounded) {
  ServerConfig config = socket_config();
  config.max_body_bytes = 1 << 20;
  config.max_inflight_bytes = 1 << 20;
  Running running(config);
  // Whichever of the two comes second is refused, so each try has a holder of its own.
  EXPECT_TRUE(eventually([&] {
    RawClient holder(running.port());
    holder.send("POST /encode HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" +
                std::string(899'999, ' '));
    RawClient client(running.port());
    client.send(http_request("POST", "/encode", std::string(200'000, ' ')));
    return client.reply().status == 429;
  }));
  EXPECT_TRUE(eventually([&] {
    RawClient client(running.port());
    client.send(http_request("POST", "/encode", std::string(200'000, ' ')));
    return client.reply().status == 400;
  }));
}

// What is only announced keeps nobody else out.
TEST(HttpServer, BodiesThatNeverComeTakeNoRoom) {
  ServerConfig config = socket_config();
  config.max_body_bytes = 1 << 20;
  config.max_inflight_bytes = 1 << 20;
  Running running(config);
  std::vector<RawClient> silent;
  for (int i = 0; i < 4; ++i) {
    silent.emplace_back(running.port());
    silent.back().send(
        "POST /encode HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: "
        "1000000\r\n\r\n");
    EXPECT_EQ(silent.back().reply().status, 100);
  }
  RawClient client(running.port());
  client.send(encode_text({png_url(1)}));
  EXPECT_EQ(client.reply().status, 200);
}

// B85: a head of a chunk, or a trailer, without an end.
TEST(HttpServer, EndlessChunkExtensionsAndTrailersAreCutOff) {
  Running running;
  const std::string endless(1'000'000, 'a');
  for (const std::string head : {"GET /health", "POST /encode"}) {
    for (const std::string begin : {"1;x=", "0\r\nX: "}) {
      RawClient client(running.port());
      client.send(head + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + begin +
                  endless);
      EXPECT_EQ(client.reply().status, 431) << head << " " << begin;
      EXPECT_TRUE(client.is_closed());
    }
  }
}

TEST(HttpServer, ConnectionsAreBounded) {
  ServerConfig config = socket_config();
  config.max_connections = 3;
  Running running(config);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(running.port());
    clients.back().send(http_request("GET", "/health"));
    EXPECT_EQ(clients.back().reply().status, 200);
  }
  RawClient beyond(running.port());
  beyond.send(http_request("GET", "/health"));
  const RawReply refused = beyond.reply();
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_EQ(refused.parsed().at("error").size(), 4U);
  EXPECT_EQ(refused.parsed().at("error").at("req_id"), refused.header("X-Request-Id"));
  EXPECT_TRUE(beyond.is_closed());
  clients[0].send(http_request("GET", "/metrics"));
  EXPECT_NE(clients[0].reply().body.find(R"(vitrove_requests_total{code="503",route="other"} 1)"),
            std::string::npos);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return get(running.port(), "/health").status == 200; }));
}

// --- start and end -----------------------------------------------------------------------------

TEST(HttpServer, APortInUseIsOneClearError) {
  Running running;
  ServerConfig config = socket_config();
  config.port = running.port();
  ServiceParts parts(config);
  EncodeServer second(config, parts.service);
  const Failure failure = failure_of([&] { second.start(); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_EQ(failure.message, "port " + std::to_string(running.port()) + " is in use");
}

TEST(HttpServer, AHostThatIsNoneIsOneClearError) {
  ServerConfig config = socket_config();
  config.host = "no such host";
  ServiceParts parts(config);
  EXPECT_EQ(failure_of([&] { EncodeServer(config, parts.service); }).code,
            ErrorCode::invalid_argument);
}

// A page that is open in a browser on this host could reach a server without keys.
TEST(HttpServer, PagesOfOtherSitesMayNotChangeAnything) {
  Running running;
  for (const std::string field :
       {"Origin: http://elsewhere.example\r\n", "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n"}) {
    for (const std::string target : {"/flush?scope=all&model=*", "/reload", "/encode"}) {
      RawClient client(running.port());
      client.send(http_request("POST", target, "{}", field));
      EXPECT_EQ(client.reply().status, 403) << field << target;
    }
    RawClient client(running.port());
    client.send(http_request("GET", "/health", {}, field));
    EXPECT_EQ(client.reply().status, 200) << field;
  }
  RawClient client(running.port());
  client.send(http_request("POST", "/flush", {}, "Sec-Fetch-Site: none\r\n"));
  EXPECT_EQ(client.reply().status, 200);
}

// A name that a page made lead here makes the page no friend of ours.
TEST(HttpServer, APageThatGotHereByRebindingMayNotChangeAnything) {
  Running running;
  for (const auto& [method, target] : std::initializer_list<std::pair<std::string, std::string>>{
           {"POST", "/flush?scope=all"},
           {"POST", "/reload"},
           {"DELETE", "/embeddings/vt1-" + std::string(64, '0')}}) {
    RawClient client(running.port());
    client.send(method + " " + target +
                " HTTP/1.1\r\nHost: rebound.example\r\nOrigin: http://rebound.example\r\n"
                "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_EQ(client.reply().status, 403) << target;
  }
}

TEST(HttpServer, AKeyIsNoAccidentWhateverThePage) {
  ServerConfig config = socket_config();
  config.api_keys = {"key"};
  Running running(config);
  RawClient client(running.port());
  client.send(encode_text({png_url(1)}, json::object(),
                          "Origin: http://elsewhere.example\r\nAuthorization: Bearer key\r\n"));
  EXPECT_EQ(client.reply().status, 200);
}

TEST(HttpServer, StartsAndEndsManyTimes) {
  for (int round = 0; round < 10; ++round) {
    Running running;
    RawClient client(running.port());
    client.send(encode_text({png_url(1)}));
    if (round % 2 == 0) {
      EXPECT_EQ(client.reply().status, 200);
    }
  }
}

}  // namespace
}  // namespace vitrove::test
