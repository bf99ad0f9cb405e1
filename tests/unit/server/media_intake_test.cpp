// What is received from elsewhere is bounded in sum (field cases B65, B83).
#include "server/media_intake.h"

#include <fstream>

#include "contract/temporary_directory.h"
#include "support.h"

namespace vitrove::test {
namespace {

// Files of a size, and their URLs.
class MediaIntakeTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    const auto path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << content;
    return "file://" + path.string();
  }
  FetchPolicy policy() const {
    FetchPolicy policy;
    policy.allowed_local_media_path = folder_.path();
    return policy;
  }
  ServerConfig config(std::uint64_t max_inflight_bytes) const {
    ServerConfig config = small_config();
    config.allowed_local_media_path = folder_.path();
    config.max_inflight_bytes = max_inflight_bytes;
    return config;
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(MediaIntakeTest, ChargesBytesForAsLongAsTheyLive) {
  const MediaIntake intake(policy(), {.all = 10'000, .request = 10'000});
  MediaIntake::Tally tally;
  MediaBytes bytes = intake.fetch(file("a", std::string(1000, 'a')), {}, tally);
  EXPECT_EQ(bytes->size(), 1000U);
  EXPECT_GE(intake.held(), 1000U);
  const MediaBytes shared = bytes;
  bytes.reset();
  EXPECT_GE(intake.held(), 1000U);
  EXPECT_EQ(tally.received, 1000U);
}

TEST_F(MediaIntakeTest, GivesEverythingBackInTheEnd) {
  const MediaIntake intake(policy(), {.all = 1'500, .request = 1'500});
  MediaIntake::Tally tally;
  intake.fetch(file("a", std::string(1000, 'a')), {}, tally);
  EXPECT_EQ(intake.held(), 0U);
  EXPECT_EQ(failure_of([&] { intake.fetch("file:///missing", {}, tally); }).code,
            ErrorCode::not_found);
  EXPECT_EQ(intake.held(), 0U);
}

TEST_F(MediaIntakeTest, OthersHavingTheRoomIsForLaterAndOneTooGreedyIsNot) {
  const MediaIntake intake(policy(), {.all = 1'500, .request = 1'500});
  const std::string url = file("a", std::string(1000, 'a'));
  MediaIntake::Tally first;
  MediaIntake::Tally second;
  MediaBytes held = intake.fetch(url, {}, first);
  EXPECT_EQ(failure_of([&] { intake.fetch(url, {}, second); }).code, ErrorCode::unavailable);
  EXPECT_EQ(failure_of([&] { intake.fetch(url, {}, first); }).code, ErrorCode::too_large);
  held.reset();
  EXPECT_TRUE(intake.fetch(url, {}, second));
}

TEST_F(MediaIntakeTest, AnItemThatCouldNeverBeHeldIsTooLarge) {
  const MediaIntake intake(policy(), {.all = 999, .request = 999});
  MediaIntake::Tally tally;
  const std::string url = file("a", std::string(1000, 'a'));
  EXPECT_EQ(failure_of([&] { intake.fetch(url, {}, tally); }).code, ErrorCode::too_large);
}

TEST_F(MediaIntakeTest, BoundsWhatOneRequestMayReceive) {
  const MediaIntake intake(policy(), {.all = 10'000, .request = 1'500});
  const std::string url = file("a", std::string(1000, 'a'));
  const std::string data = "data:," + std::string(1000, 'a');
  for (const auto& [first, second] :
       {std::pair{url, url}, {url, data}, {data, url}, {data, data}}) {
    MediaIntake::Tally tally;
    EXPECT_TRUE(intake.fetch(first, {}, tally));
    const auto failure = failure_of([&] { intake.fetch(second, {}, tally); });
    EXPECT_EQ(failure.code, ErrorCode::too_large);
    EXPECT_NE(failure.message.find("limit of 1500 bytes"), std::string::npos) << failure.message;
    MediaIntake::Tally of_another;
    EXPECT_TRUE(intake.fetch(second, {}, of_another));
  }
  EXPECT_EQ(intake.held(), 0U);
}

TEST_F(MediaIntakeTest, ARequestOfManyLargeItemsEndsAtTheBound) {
  TestServer server(config(300'000));
  json urls = json::array();
  for (int i = 0; i < 8; ++i) {
    urls.push_back(file(std::to_string(i), png(static_cast<std::uint32_t>(i), 200, 200)));
  }
  const Reply reply = server.encode(urls);
  EXPECT_EQ(reply.status(), 413);
  EXPECT_TRUE(eventually([&] { return server.parts.service->media_bytes() == 0; }));
  EXPECT_EQ(server.encode({urls[0], urls[1]}).status(), 200);
}

TEST_F(MediaIntakeTest, WithoutRoomARequestIsAskedToComeAgain) {
  TestServer server(config(200'000));
  const std::string one = file("1", png(1, 200, 200));
  const std::string two = file("2", png(2, 200, 200));
  server.parts.encoder->gate.close();
  auto running = server.start_encode({one});
  ASSERT_TRUE(server.parts.encoder->gate.wait_for_waiting(1));
  const Reply refused = server.encode({two});
  EXPECT_EQ(refused.status(), 503);
  EXPECT_EQ(refused.error().at("item"), 0);
  EXPECT_FALSE(refused.header("Retry-After").empty());
  server.parts.encoder->gate.open();
  EXPECT_EQ(running.get().status(), 200);
  EXPECT_TRUE(eventually([&] { return server.encode({two}).status() == 200; }));
  EXPECT_TRUE(eventually([&] { return server.parts.service->media_bytes() == 0; }));
}

TEST_F(MediaIntakeTest, ItemsThatWereHitsAreNotHeldWhileOthersAreEncoded) {
  TestServer server(config(200'000));
  const std::string known = file("1", png(1, 200, 200));
  ASSERT_EQ(server.encode({known}).status(), 200);
  server.parts.encoder->gate.close();
  auto running = server.start_encode({known, png_url(2)});
  ASSERT_TRUE(server.parts.encoder->gate.wait_for_waiting(1));
  EXPECT_EQ(server.parts.service->media_bytes(), 0U);
  server.parts.encoder->gate.open();
  EXPECT_EQ(running.get().status(), 200);
}

}  // namespace
}  // namespace vitrove::test
