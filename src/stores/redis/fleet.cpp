#include "stores/redis/fleet.h"

#include <algorithm>

#include "stores/redis/errors.h"
#include "stores/redis/exchange.h"

namespace vitrove::redis {
namespace {

// The map is not asked for more often, however many redirects there are.
constexpr auto learn_interval = std::chrono::milliseconds(100);
constexpr auto longest_rest = std::chrono::seconds(1);

}  // namespace

void Fleet::Bell::ring() {
  {
    std::lock_guard lock(mutex);
    is_rung = true;
  }
  rung.notify_all();
}

Fleet::Fleet(std::shared_ptr<const Settings> settings) : settings_(std::move(settings)) {
  for (const auto& [host, port] : settings_->options.servers) node_at_locked({host, port});
  if (!is_cluster()) {
    auto map = std::make_shared<SlotMap>();
    map->nodes = {nodes_.begin()->second};
    map->owners.fill(map->nodes.front());
    map_ = std::move(map);
  }
  keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
}

Fleet::~Fleet() {
  keeper_.request_stop();
  keeper_.join();
}

Fleet::NodePtr Fleet::node_at_locked(const Endpoint& endpoint) {
  NodePtr& node = nodes_[endpoint];
  if (!node) {
    node = std::make_shared<Node>(endpoint, settings_, [bell = bell_] { bell->ring(); });
  }
  return node;
}

Fleet::NodePtr Fleet::node_at(const Endpoint& endpoint) {
  std::lock_guard lock(mutex_);
  return node_at_locked(endpoint);
}

std::vector<Fleet::NodePtr> Fleet::all_nodes() const {
  std::lock_guard lock(mutex_);
  std::vector<NodePtr> nodes;
  nodes.reserve(nodes_.size());
  for (const auto& [endpoint, node] : nodes_) nodes.push_back(node);
  return nodes;
}

std::shared_ptr<const Fleet::SlotMap> Fleet::map_after_first_attempt(const StoreContext& context) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, context.cancel, context.deadline,
                      [&] { return map_ || was_attempted_; });
  return map_;
}

Fleet::NodePtr Fleet::node_of(std::uint16_t slot, const StoreContext& context, Fault& fault) {
  const auto map = map_after_first_attempt(context);
  NodePtr node = map ? map->owners[slot] : nullptr;
  if (!node) fault = {StoreStatus::unavailable, EHOSTDOWN, "no server is known for the slot"};
  return node;
}

std::vector<Fleet::NodePtr> Fleet::all_serving(const StoreContext& context, Fault& fault) {
  const auto map = map_after_first_attempt(context);
  if (map && !map->nodes.empty()) return map->nodes;
  fault = {StoreStatus::unavailable, EHOSTDOWN, "the servers of the cluster are not known"};
  return {};
}

void Fleet::learn_anew() { bell_->ring(); }

void Fleet::doubt(const Endpoint& endpoint) {
  {
    std::lock_guard lock(mutex_);
    doubted_.insert(endpoint);
  }
  bell_->ring();
}

bool Fleet::is_doubted(const Endpoint& endpoint) const {
  std::lock_guard lock(mutex_);
  return doubted_.contains(endpoint);
}

std::uint64_t Fleet::max_value_bytes() const {
  std::uint64_t least = settings_->options.max_value_bytes;
  for (const NodePtr& node : all_nodes()) least = std::min(least, node->max_value_bytes());
  return least;
}

StoreHealth Fleet::health() const {
  std::size_t up = 0;
  std::size_t down = 0;
  StoreHealth health;
  for (const NodePtr& node : all_nodes()) {
    const Node::State state = node->state();
    if (state == Node::State::up) ++up;
    if (state != Node::State::down || down++ > 0) continue;
    health.detail = node->endpoint().text() + ": " + node->fault().detail;
  }
  const bool has_map = [this] {
    std::lock_guard lock(mutex_);
    return map_ != nullptr;
  }();
  if (up > 0 && has_map) {
    health.state = down > 0 ? StoreState::degraded : StoreState::ready;
  } else {
    health.state = down > 0 ? StoreState::down : StoreState::degraded;
    if (health.detail.empty()) health.detail = "not connected yet";
  }
  add_memory(health);
  return health;
}

// Of all that serve slots together; nothing when one of them does not tell, and no capacity when
// one has no limit.
void Fleet::add_memory(StoreHealth& health) const {
  const auto map = [this] {
    std::lock_guard lock(mutex_);
    return map_;
  }();
  if (!map || map->nodes.empty()) return;
  std::uint64_t used = 0;
  std::uint64_t capacity = 0;
  bool is_bounded = true;
  for (const NodePtr& node : map->nodes) {
    const auto memory = node->memory();
    if (!memory) return;
    used += memory->used;
    capacity += memory->limit;
    is_bounded = is_bounded && memory->limit > 0;
  }
  health.bytes = used;
  if (is_bounded) health.capacity = capacity;
}

bool Fleet::is_all_up() const {
  return std::ranges::all_of(all_nodes(),
                             [](const NodePtr& node) { return node->state() == Node::State::up; });
}

bool Fleet::wait_for_first_attempt() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return was_attempted_; });
  }
  return health().state == StoreState::ready;
}

void Fleet::keep(const std::stop_token& stop) noexcept {
  while (!stop.stop_requested()) {
    try {
      keep_once(stop);
    } catch (const std::exception& error) {  // out of memory: the next round may fare better
      logger()->error("redis store: {}", error.what());
      std::unique_lock lock(bell_->mutex);
      bell_->rung.wait_for(lock, stop, longest_rest, [] { return false; });
    }
  }
}

void Fleet::keep_once(const std::stop_token& stop) {
  bool was_rung = false;
  {
    std::lock_guard lock(bell_->mutex);
    was_rung = std::exchange(bell_->is_rung, false);
  }
  auto next = Clock::now() + longest_rest;
  for (const NodePtr& node : all_nodes()) next = std::min(next, node->tend(Clock::now(), stop));
  if (is_cluster()) {
    wants_map_ = wants_map_ || was_rung || !is_all_up();
    if (wants_map_ && Clock::now() >= next_learn_) learn(stop);
    if (wants_map_) next = std::min(next, next_learn_);
  }
  {
    std::lock_guard lock(mutex_);
    was_attempted_ = true;
  }
  changed_.notify_all();
  std::unique_lock lock(bell_->mutex);
  bell_->rung.wait_until(lock, stop, next, [&] { return bell_->is_rung; });
}

// A server that was cut off from the others goes on telling how it was before: as long as anybody
// else can be asked, it is not.
void Fleet::learn(const std::stop_token& stop) {
  next_learn_ = Clock::now() + learn_interval;
  const bool has_learnt =
      learn_from_any(false, stop) || (!ask_those_of_the_url() && learn_from_any(true, stop));
  if (has_learnt) wants_map_ = false;
}

bool Fleet::learn_from_any(bool doubted, const std::stop_token& stop) {
  return std::ranges::any_of(all_nodes(), [&](const NodePtr& node) {
    return node->state() == Node::State::up && is_doubted(node->endpoint()) == doubted &&
           learn_from(*node, stop);
  });
}

// Whether one of them is new, so that it has to be reached first.
bool Fleet::ask_those_of_the_url() {
  bool is_new = false;
  for (const auto& [host, port] : settings_->options.servers) {
    is_new = node_at({host, port})->state() == Node::State::unknown || is_new;
  }
  return is_new;
}

bool Fleet::learn_from(Node& node, const std::stop_token& stop) {
  StoreContext context;
  context.cancel = stop;
  context.deadline = Clock::now() + settings_->options.timeout;
  Fault fault;
  Node::Lease lease = node.lease(Use::read, context, fault);
  if (!lease) return false;
  Command slots;
  slots.head = encode_command({"CLUSTER", "SLOTS"});
  std::vector<std::unique_ptr<Exchange>> exchange;
  exchange.push_back(std::make_unique<Exchange>(lease.connection(), std::vector{&slots}, context));
  drive(exchange, context, settings_->options.timeout);
  if (exchange.front()->state() != Exchange::State::done) return false;
  lease.give_back();
  const auto ranges = parse_slot_ranges(slots.reply, node.endpoint().host);
  if (!ranges || ranges->empty()) return false;
  adopt(*ranges);
  return true;
}

void Fleet::adopt(const std::vector<SlotRange>& ranges) {
  std::map<Endpoint, NodePtr> forgotten;  // destroyed without the lock
  {
    std::lock_guard lock(mutex_);
    auto map = std::make_shared<SlotMap>();
    std::set<Endpoint> wanted;
    for (const SlotRange& range : ranges) {
      const NodePtr node = node_at_locked(range.server);
      if (wanted.insert(range.server).second) map->nodes.push_back(node);
      std::fill(map->owners.begin() + range.first, map->owners.begin() + range.last + 1, node);
    }
    // What the cluster no longer names is looked after no more.
    for (auto node = nodes_.begin(); node != nodes_.end();) {
      if (wanted.contains(node->first)) {
        ++node;
      } else {
        forgotten.insert(nodes_.extract(node++));
      }
    }
    map_ = std::move(map);
    doubted_.clear();
  }
  changed_.notify_all();
}

}  // namespace vitrove::redis
