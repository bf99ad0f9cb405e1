#include "server/send_pace.h"

#include <gtest/gtest.h>

namespace vitrove {
namespace {

using namespace std::chrono_literals;
using Clock = SendPace::Clock;

constexpr Clock::time_point start{100s};

TEST(SendPace, WhatMovesAlongIsGivenTime) {
  SendPace pace(30s);
  pace.begin(start);
  EXPECT_EQ(pace.due(), start + 30s);
  pace.sent(30 * 1024, start + 29s);
  EXPECT_EQ(pace.due(), start + 59s);
}

TEST(SendPace, AByteNowAndThenIsNoProgress) {
  SendPace pace(30s);
  pace.begin(start);
  for (int second = 1; second < 30; ++second) pace.sent(1, start + second * 1s);
  EXPECT_EQ(pace.due(), start + 30s);
}

TEST(SendPace, SmallPiecesCountTogether) {
  SendPace pace(30s);
  pace.begin(start);
  for (int piece = 0; piece < 30; ++piece) pace.sent(1024, start + 20s);
  EXPECT_EQ(pace.due(), start + 50s);
}

TEST(SendPace, WithinAShortTimeoutAnyByteWillDo) {
  SendPace pace(500ms);
  pace.begin(start);
  pace.sent(1, start + 400ms);
  EXPECT_EQ(pace.due(), start + 900ms);
}

TEST(SendPace, EachReplyBeginsAnew) {
  SendPace pace(30s);
  pace.begin(start);
  pace.sent(20 * 1024, start + 1s);
  pace.begin(start + 2s);
  pace.sent(20 * 1024, start + 3s);
  EXPECT_EQ(pace.due(), start + 32s);
}

}  // namespace
}  // namespace vitrove
