#include "server/send_pace.h"

#include <gtest/gtest.h>

namespace vitrove {
namespace {

using namespace std::chrono_literals;
using Clock = SendPace::Clock;

constexpr Clock::time_point start{100s};

// A reply of which a part is on its way, and `taken` bytes of all that was sent before.
SendPace begun(std::chrono::microseconds timeout, std::uint64_t taken) {
  SendPace pace(timeout);
  pace.begin(start);
  pace.look(taken, start);
  return pace;
}

TEST(SendPace, WhatMovesAlongIsGivenTime) {
  SendPace pace = begun(30s, 7);
  EXPECT_EQ(pace.due(), start + 30s);
  pace.look(7 + 30 * 256, start + 29s);
  EXPECT_EQ(pace.due(), start + 59s);
}

TEST(SendPace, AByteNowAndThenIsNoProgress) {
  SendPace pace = begun(30s, 0);
  for (unsigned second = 1; second < 30; ++second) pace.look(second, start + second * 1s);
  EXPECT_EQ(pace.due(), start + 30s);
}

TEST(SendPace, SmallPiecesCountTogether) {
  SendPace pace = begun(30s, 0);
  for (unsigned piece = 1; piece <= 30; ++piece) pace.look(piece * 256, start + 20s);
  EXPECT_EQ(pace.due(), start + 50s);
}

TEST(SendPace, WithinAShortTimeoutAnyByteWillDo) {
  SendPace pace = begun(500ms, 0);
  pace.look(1, start + 400ms);
  EXPECT_EQ(pace.due(), start + 900ms);
}

TEST(SendPace, EachReplyBeginsAnewFromWhatWasTakenByThen) {
  SendPace pace = begun(30s, 0);
  pace.look(7000, start + 1s);
  pace.begin(start + 2s);
  pace.look(7000, start + 3s);
  pace.look(8000, start + 4s);
  EXPECT_EQ(pace.due(), start + 33s);
}

}  // namespace
}  // namespace vitrove
