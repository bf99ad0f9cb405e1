// FeatureLeads: which threads hold the fill of a feature key that is not served yet.
//
// resolve_features() may wait for another request's fill of the same features. A thread that leads
// such a fill itself must not: two requests with the same two pictures in opposite order would wait
// for each other. So it goes without waiting, and encodes. Where leads are handed to other threads
// a bound on the wait does the rest.
#pragma once

#include <mutex>
#include <thread>
#include <unordered_map>

namespace vitrove {

class FeatureLeads {
 public:
  using Holder = std::thread::id;

  Holder add() {
    const Holder holder = std::this_thread::get_id();
    std::lock_guard lock(mutex_);
    ++leads_[holder];
    return holder;
  }
  void remove(Holder holder) {
    std::lock_guard lock(mutex_);
    if (--leads_[holder] == 0) leads_.erase(holder);
  }
  bool this_thread_leads() const {
    std::lock_guard lock(mutex_);
    return leads_.contains(std::this_thread::get_id());
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Holder, int> leads_;
};

}  // namespace vitrove
