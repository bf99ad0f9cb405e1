// That a connection which is gone costs no process.
#include "base/no_sigpipe.h"

#include <array>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

namespace vitrove {
namespace {

// A pipe that nobody reads from. Writing to it kills a program that has said nothing else.
class NoSigpipeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = ::signal(SIGPIPE, SIG_DFL);
    ASSERT_EQ(::pipe(ends_.data()), 0);
    ::close(ends_[0]);
  }
  void TearDown() override {
    ::close(ends_[1]);
    ::signal(SIGPIPE, before_);
  }
  void write_in_vain() const {
    EXPECT_EQ(::write(ends_[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  static bool is_blocked() {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return ::sigismember(&mask, SIGPIPE) == 1;
  }

  std::array<int, 2> ends_{};

 private:
  void (*before_)(int) = SIG_DFL;
};

TEST_F(NoSigpipeTest, WithoutItTheProcessDies) {
  EXPECT_EXIT(static_cast<void>(::write(ends_[1], "x", 1)), ::testing::KilledBySignal(SIGPIPE), "");
}

TEST_F(NoSigpipeTest, WritingIsAnErrorAndNothingIsLeftBehind) {
  for (int i = 0; i < 3; ++i) {
    const NoSigpipe guard;
    write_in_vain();
    write_in_vain();
  }
  EXPECT_FALSE(is_blocked());
}

TEST_F(NoSigpipeTest, ThreadsThatAreStartedMeanwhileInheritIt) {
  std::thread started;
  {
    const NoSigpipe guard;
    started = std::thread([this] { write_in_vain(); });
  }
  started.join();
}

TEST_F(NoSigpipeTest, WhatWasBlockedStaysBlocked) {
  const NoSigpipe outer;
  {
    const NoSigpipe inner;
    write_in_vain();
  }
  EXPECT_TRUE(is_blocked());
  write_in_vain();
}

}  // namespace
}  // namespace vitrove
