// DueTimer: tells its owner when it is overdue. The due time moves all the while (with each
// request, and with each part of a reply): a later one costs nothing, since the timer looks again
// when it fires, and only an earlier one has to set it anew.
//
// Used on its owner's strand alone, and a member of the owner, which it does not keep alive.
#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace vitrove {

template <typename Owner>
class DueTimer {
 public:
  using Clock = std::chrono::steady_clock;

  // `on_due` is called once for each due time that passes.
  DueTimer(const boost::asio::any_io_executor& executor, Owner& owner, void (Owner::*on_due)())
      : timer_(executor), owner_(owner), on_due_(on_due) {}

  Clock::time_point due() const { return due_; }

  void set(Clock::time_point due) {
    due_ = due;
    if (armed_until_ > due_) arm();
  }

  void cancel() { timer_.cancel(); }

 private:
  void arm() {
    armed_until_ = due_;
    timer_.expires_at(due_);
    timer_.async_wait(
        [this, weak = owner_.weak_from_this()](const boost::system::error_code& error) {
          const auto owner = weak.lock();
          if (owner && !error) look();
        });
  }

  void look() {
    armed_until_ = Clock::time_point::max();
    if (Clock::now() < due_) return arm();
    (owner_.*on_due_)();
  }

  boost::asio::steady_timer timer_;
  Owner& owner_;
  void (Owner::*const on_due_)();
  Clock::time_point due_ = Clock::time_point::max();
  Clock::time_point armed_until_ = Clock::time_point::max();
};

}  // namespace vitrove
