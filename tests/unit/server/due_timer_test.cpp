#include "server/due_timer.h"

#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Owner : std::enable_shared_from_this<Owner> {
  explicit Owner(boost::asio::io_context& context)
      : timer(context.get_executor(), *this, &Owner::on_due) {}
  void on_due() {
    ++times;
    called = Clock::now();
  }

  int times = 0;
  Clock::time_point called;
  DueTimer<Owner> timer;
};

class DueTimers : public ::testing::Test {
 protected:
  boost::asio::io_context context_;
  std::shared_ptr<Owner> owner_ = std::make_shared<Owner>(context_);
  const Clock::time_point start_ = Clock::now();
};

TEST_F(DueTimers, CallOnceWhenTheTimeHasPassed) {
  owner_->timer.set(start_ + 5ms);
  context_.run();
  EXPECT_EQ(owner_->times, 1);
  EXPECT_GE(owner_->called, start_ + 5ms);
}

TEST_F(DueTimers, GoByTheLastTimeThatWasSetLaterOrEarlier) {
  owner_->timer.set(start_ + 5ms);
  owner_->timer.set(start_ + 40ms);
  context_.run();
  EXPECT_EQ(owner_->times, 1);
  EXPECT_GE(owner_->called, start_ + 40ms);
  context_.restart();
  owner_->timer.set(Clock::now() + 10min);
  owner_->timer.set(Clock::now() + 5ms);
  context_.run();
  EXPECT_EQ(owner_->times, 2);
  EXPECT_LT(owner_->called, start_ + 10min);
}

TEST_F(DueTimers, CallNobodyOnceTheyAreCancelledOrTheirOwnerIsGone) {
  owner_->timer.set(start_ + 5ms);
  owner_->timer.cancel();
  context_.run();
  EXPECT_EQ(owner_->times, 0);
  context_.restart();
  owner_->timer.set(start_ + 5ms);
  owner_.reset();
  context_.run();
}

}  // namespace
}  // namespace vitrove
