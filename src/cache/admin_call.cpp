#include "cache/admin_call.h"

namespace vitrove {

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
  set_deadline(LaneCall::Clock::time_point::max());
  call_ = nullptr;
  group_->finished(0);
}

}  // namespace vitrove
