// The servers of a store, who serves which slots, and the thread that looks after them.
//
// One server serves all slots; of a cluster the map is learned in the background, again whenever a
// redirect or a lost server shows that it is old. All methods are thread-safe.
#pragma once

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "stores/redis/node.h"
#include "stores/redis/slot_ranges.h"

namespace vitrove::redis {

class Fleet {
 public:
  explicit Fleet(std::shared_ptr<const Settings> settings);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  using NodePtr = std::shared_ptr<Node>;

  // Null with `fault` filled in when nobody is known to serve the slot. Waits for the first attempt
  // to learn the map, not longer.
  NodePtr node_of(std::uint16_t slot, const StoreContext& context, Fault& fault);
  // Every server that serves slots; empty with `fault` filled in when they are not known.
  std::vector<NodePtr> all_serving(const StoreContext& context, Fault& fault);
  // A server that a redirect named.
  NodePtr node_at(const Endpoint& endpoint);

  // The map is old.
  void learn_anew();
  // And this server itself has shown that what it knows may be old: others are asked before it.
  void doubt(const Endpoint& endpoint);

  bool is_cluster() const { return settings_->options.cluster; }
  StoreHealth health() const;
  // The smallest of the servers' own limits.
  std::uint64_t max_value_bytes() const;
  // True when everything was reached in the first attempt.
  bool wait_for_first_attempt();

 private:
  struct SlotMap {
    std::vector<NodePtr> nodes;
    std::array<NodePtr, slot_count> owners;
  };
  // What wakes the keeper; nodes that outlive the fleet in a call may still ring.
  struct Bell {
    std::mutex mutex;
    std::condition_variable_any rung;
    bool is_rung = false;

    void ring();
  };

  void keep(const std::stop_token& stop) noexcept;
  void keep_once(const std::stop_token& stop);
  void learn(const std::stop_token& stop);
  bool learn_from_any(bool doubted, const std::stop_token& stop);
  bool is_doubted(const Endpoint& endpoint) const;
  bool ask_those_of_the_url();
  bool learn_from(Node& node, const std::stop_token& stop);
  void adopt(const std::vector<SlotRange>& ranges);
  NodePtr node_at_locked(const Endpoint& endpoint);
  std::vector<NodePtr> all_nodes() const;
  std::shared_ptr<const SlotMap> map_after_first_attempt(const StoreContext& context);
  bool is_all_up() const;
  void add_memory(StoreHealth& health) const;

  const std::shared_ptr<const Settings> settings_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Endpoint, NodePtr> nodes_;  // named by the URL, the map or a redirect
  std::set<Endpoint> doubted_;         // since the map was learned
  std::shared_ptr<const SlotMap> map_;
  bool was_attempted_ = false;
  // The keeper's alone.
  bool wants_map_ = true;
  Clock::time_point next_learn_ = Clock::time_point::min();

  std::jthread keeper_;  // last: it uses all of the above
};

}  // namespace vitrove::redis
