// Something that a server does not do, from when that shows until it is seen to do it: for health()
// and for the log. Thread-safe; where there is none, end() costs one load.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

namespace vitrove::redis {

class StandingTrouble {
 public:
  // True when there was none before. The words of the last one stay.
  bool begin(std::string detail);
  // True when there was one.
  bool end();

  // Empty when all is well.
  std::string detail() const;

 private:
  std::atomic<bool> is_there_{false};
  mutable std::mutex mutex_;
  std::string detail_;
};

}  // namespace vitrove::redis
