#include "cache/admin_call.h"

namespace vitrove {
namespace {

constexpr std::chrono::seconds hand_over{10};

}  // namespace

void AdminCall::run(const std::stop_token& shutdown) noexcept {
  const std::stop_callback forward(shutdown, [this] { stop_.request_stop(); });
  StoreContext context;
  context.deadline = deadline();
  context.cancel = stop_.get_token();
  try {
    call_(context);
  } catch (...) {  // out of memory: the caller sees that nothing was answered
  }
  // What that sets free, puts that waited for a delete, wants a thread: this one is back.
  set_deadline(LaneCall::Clock::now() + hand_over);
  call_ = nullptr;
  group_->finished(0);
}

}  // namespace vitrove
