#include "base/log.h"

#include <sstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using namespace std::chrono_literals;

// While it lives, the library logs into a string.
class CapturedLog {
 public:
  explicit CapturedLog(LogFormat format) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out_);
    auto captured = std::make_shared<spdlog::logger>("vitrove", sink);
    captured->set_formatter(make_log_formatter(format));
    captured->set_level(spdlog::level::trace);
    spdlog::drop("vitrove");
    spdlog::register_logger(captured);
  }
  ~CapturedLog() { spdlog::drop("vitrove"); }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;

  std::vector<std::string> lines() const {
    std::istringstream in(out_.str());
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

 private:
  std::ostringstream out_;
};

TEST(Log, GoesToTheLoggerThatTheApplicationRegistered) {
  const CapturedLog log(LogFormat::text);
  logger()->info("hello {}", 42);
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_THAT(log.lines()[0], EndsWith(" info hello 42"));
}

TEST(Log, FallsBackToTheDefaultLogger) {
  spdlog::drop("vitrove");
  EXPECT_EQ(logger(), spdlog::default_logger());
}

TEST(Log, TextLinesCannotBeForgedThroughAMessage) {
  const CapturedLog log(LogFormat::text);
  logger()->warn("bad id: {}", "x\r\n2025-01-01T00:00:00.000Z info all is well\x1b[2J");
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_THAT(log.lines()[0], HasSubstr("warning bad id: x\\x0d\\x0a2025"));
  EXPECT_THAT(log.lines()[0], EndsWith("well\\x1b[2J"));
}

TEST(Log, JsonIsOneObjectALineWhateverTheMessage) {
  const CapturedLog log(LogFormat::json);
  logger()->error("a \"quoted\"\nthing \\ with \xff bytes and größe");
  logger()->debug("second");
  ASSERT_EQ(log.lines().size(), 2U);
  const auto first = nlohmann::json::parse(log.lines()[0]);
  EXPECT_EQ(first["level"].get<std::string>(), "error");
  EXPECT_THAT(first["message"].get<std::string>(), HasSubstr("a \"quoted\"\nthing \\ with "));
  EXPECT_THAT(first["message"].get<std::string>(), EndsWith("größe"));
  EXPECT_THAT(first["time"].get<std::string>(),
              testing::MatchesRegex("....-..-..T..:..:..\\.......Z"));
  EXPECT_EQ(nlohmann::json::parse(log.lines()[1])["level"].get<std::string>(), "debug");
}

TEST(Log, LevelsAndFormatsHaveNames) {
  EXPECT_EQ(parse_log_level("warning"), spdlog::level::warn);
  EXPECT_EQ(parse_log_level("off"), spdlog::level::off);
  EXPECT_EQ(parse_log_format("json"), LogFormat::json);
  EXPECT_EQ(parse_log_format("text"), LogFormat::text);
}

TEST(Log, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const auto message_of = [](auto call) -> std::string {
    try {
      call();
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_THAT(message_of([] { parse_log_level("loud"); }), HasSubstr("debug, info, warning"));
  EXPECT_THAT(message_of([] { parse_log_format("xml"); }), HasSubstr("text, json"));
}

TEST(Log, SetUpReplacesTheLoggerAndItsLevel) {
  set_up_logging(spdlog::level::err, LogFormat::json);
  set_up_logging(spdlog::level::warn, LogFormat::text);
  EXPECT_EQ(logger()->name(), "vitrove");
  EXPECT_EQ(logger()->level(), spdlog::level::warn);
  spdlog::drop("vitrove");
}

TEST(LogThrottle, SpeaksOncePerIntervalAndCountsTheSilence) {
  LogThrottle throttle(10s);
  const LogThrottle::Clock::time_point start{100s};
  EXPECT_EQ(throttle.allow(start), 0U);
  EXPECT_FALSE(throttle.allow(start));
  EXPECT_FALSE(throttle.allow(start + 9999ms));
  EXPECT_EQ(throttle.allow(start + 10s), 2U);
  EXPECT_FALSE(throttle.allow(start + 19s));
  EXPECT_EQ(throttle.allow(start + 60s), 1U);
  EXPECT_EQ(throttle.allow(start + 70s), 0U);
}

TEST(LogThrottle, OneDoesNotSilenceAnother) {
  LogThrottle first(1h);
  LogThrottle second(1h);
  EXPECT_TRUE(first.allow());
  EXPECT_TRUE(second.allow());
}

TEST(LogThrottle, SaysHowManyLinesItSwallowed) {
  const CapturedLog log(LogFormat::text);
  LogThrottle throttle(0s);
  throttle.log(spdlog::level::warn, "store {} is away", 1);
  ASSERT_EQ(log.lines().size(), 1U);
  EXPECT_THAT(log.lines()[0], EndsWith("warning store 1 is away"));

  LogThrottle slow(1h);
  const auto past = LogThrottle::Clock::now() - 2h;
  EXPECT_TRUE(slow.allow(past));
  EXPECT_FALSE(slow.allow(past));
  EXPECT_FALSE(slow.allow(past));
  slow.log(spdlog::level::warn, "store is away");
  slow.log(spdlog::level::warn, "store is away");
  ASSERT_EQ(log.lines().size(), 2U);
  EXPECT_THAT(log.lines()[1], EndsWith("store is away (2 more of these were not shown)"));
}

TEST(LogThrottle, OfManyThreadsOneSpeaksAndNoneIsForgotten) {
  LogThrottle throttle(1h);
  const LogThrottle::Clock::time_point now{100s};
  constexpr int threads = 4;
  constexpr int calls = 1000;
  std::atomic<int> spoken{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t) {
      crowd.emplace_back([&] {
        for (int i = 0; i < calls; ++i) spoken += throttle.allow(now).has_value();
      });
    }
  }
  EXPECT_EQ(spoken, 1);
  EXPECT_EQ(throttle.allow(now + 1h), threads * calls - 1U);
}

}  // namespace
}  // namespace vitrove
