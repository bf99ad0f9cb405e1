// What went wrong first, from whichever thread it came. Everybody stops once there is something.
#pragma once

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>

namespace vitrove::soak {

// An invariant that does not hold.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& otherwise) {
  if (!holds) throw Broken(otherwise);
}

class Verdict {
 public:
  void condemn(const std::string& reason) {
    std::lock_guard lock(mutex_);
    if (reason_.empty()) reason_ = reason;
    bad_ = true;
  }
  bool bad() const { return bad_; }
  std::string reason() const {
    std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;
  std::string reason_;
  std::atomic<bool> bad_{false};
};

}  // namespace vitrove::soak
