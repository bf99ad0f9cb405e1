// How a server ends: drains, deadlines, force, and stores that hang meanwhile.

#include <vector>

#include "running_server.h"

namespace vitrove::test {
namespace {

// B78
TEST(HttpServer, DrainingAnswersWhatWasAcceptedAndFlushesPuts) {
  const auto store = std::make_shared<testing::FaultyStore>(memory_store());
  store->add({.op = testing::StoreOp::put, .fault = testing::Fault::hold_before});
  Running running(socket_config(), std::make_shared<TestEncoder>(), {store});
  running.parts.encoder->gate.close();
  RawClient idle(running.port());
  idle.send(http_request("GET", "/health"));
  EXPECT_EQ(idle.reply().status, 200);
  RawClient busy(running.port());
  busy.send(encode_text({png_url(1)}));
  ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));

  running.server.begin_drain();
  running.server.begin_drain();
  std::thread ender([&] { EXPECT_TRUE(running.server.wait()); });
  EXPECT_TRUE(idle.is_closed());
  EXPECT_TRUE(eventually([&] { return !RawClient(running.port()).connected(); }));
  running.parts.encoder->gate.open();
  const RawReply reply = busy.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Connection"), "close");
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  store->gate().open();
  ender.join();
  EXPECT_GE(store->inner().health().entries.value_or(0), 1U);
}

TEST(HttpServer, DuringTheDrainDelayReadyFailsAndWorkGoesOn) {
  ServerConfig config = socket_config();
  config.drain_delay = std::chrono::seconds(120);
  Running running(config);
  running.server.begin_drain();
  std::thread ender([&] { EXPECT_FALSE(running.server.wait()); });
  EXPECT_EQ(get(running.port(), "/ready").status, 503);
  RawClient client(running.port());
  client.send(encode_text({png_url(1)}));
  EXPECT_EQ(client.reply().status, 200);
  running.server.force_stop();
  ender.join();
}

TEST(HttpServer, ADrainThatTakesTooLongEndsUnclean) {
  ServerConfig config = socket_config();
  config.drain_timeout = std::chrono::milliseconds(100);
  Running running(config);
  running.parts.encoder->gate.close();
  RawClient busy(running.port());
  busy.send(encode_text({png_url(1)}));
  ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
  running.server.begin_drain();
  EXPECT_FALSE(running.server.wait());
  EXPECT_TRUE(busy.is_closed());
}

TEST(HttpServer, ForcingEndsItWhileTheEncoderStillRuns) {
  Running running;
  running.parts.encoder->gate.close();
  RawClient busy(running.port());
  busy.send(encode_text({png_url(1)}));
  ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
  running.server.force_stop();
  EXPECT_FALSE(running.server.wait());
  EXPECT_TRUE(busy.is_closed());
}

// The probe is told to leave, and the encoder, which cannot be, is not waited for.
TEST(HttpServer, ForcingEndsItWhileAProbeStandsBeforeTheEncoder) {
  Running running;
  running.parts.encoder->gate.close();
  RawClient probe(running.port());
  probe.send(http_request("GET", "/health_generate"));
  ASSERT_TRUE(running.parts.encoder->gate.wait_for_waiting(1));
  running.server.force_stop();
  EXPECT_FALSE(running.server.wait());
  EXPECT_TRUE(probe.is_closed());
}

TEST(HttpServer, AStuckStoreDoesNotHoldUpTheEnd) {
  const auto store = std::make_shared<testing::FaultyStore>(memory_store());
  store->add({.op = testing::StoreOp::list, .fault = testing::Fault::hold_before});
  Running running(socket_config(), std::make_shared<TestEncoder>(), {store});
  RawClient admin(running.port());
  admin.send(http_request("POST", "/flush?scope=store"));
  ASSERT_TRUE(store->gate().wait_for_waiting(1));
  running.server.force_stop();
  EXPECT_FALSE(running.server.wait());
  EXPECT_TRUE(admin.is_closed());
  store->gate().open();
}

}  // namespace
}  // namespace vitrove::test
