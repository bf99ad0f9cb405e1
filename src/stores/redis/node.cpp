#include "stores/redis/node.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <limits>
#include <utility>

#include "base/stoppable_wait.h"
#include "stores/batch.h"
#include "stores/redis/errors.h"
#include "stores/redis/exchange.h"

namespace vitrove::redis {
namespace {

constexpr auto check_interval = std::chrono::seconds(1);
constexpr auto first_pause = std::chrono::milliseconds(50);
constexpr auto longest_pause = std::chrono::seconds(5);
constexpr auto trim_interval = std::chrono::seconds(30);

bool tells_about_server(const Fault& fault) {
  return fault.status == StoreStatus::unavailable || fault.status == StoreStatus::denied;
}

}  // namespace

Node::Node(Endpoint endpoint, std::shared_ptr<const Settings> settings,
           std::function<void()> on_change)
    : endpoint_(std::move(endpoint)),
      settings_(std::move(settings)),
      on_change_(std::move(on_change)) {}

Node::State Node::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

Fault Node::fault() const {
  std::lock_guard lock(mutex_);
  return fault_;
}

std::optional<ServerMemory> Node::memory() const {
  std::lock_guard lock(mutex_);
  return memory_;
}

Node::Lease Node::lease(Use use, const StoreContext& context, Fault& fault) {
  std::unique_ptr<Connection> idle;
  while (wait_for_place(use, context, fault, idle)) {
    Lease lease = lease_at_place(use, std::move(idle), context, fault);
    if (lease || fault) return lease;  // else one of those that there are has to do
  }
  return {};
}

Node::Lease Node::lease_unawaited(Use use, const StoreContext& context, Fault& fault) {
  std::unique_ptr<Connection> idle;
  {
    std::lock_guard lock(mutex_);
    if (!take_place(use, fault, idle)) return {};
  }
  return lease_at_place(use, std::move(idle), context, fault);
}

Node::Lease Node::lease_at_place(Use use, std::unique_ptr<Connection> connection,
                                 const StoreContext& context, Fault& fault) {
  Lease lease(this, use);  // gives the place back if nothing comes of it
  while (connection && !connection->is_quiet()) connection = next_idle();
  if (!connection) {
    const auto latest = Clock::now() + settings_->options.connect_timeout;
    connection = connect(std::min(context.deadline, latest), context.cancel, fault);
    const bool was_late = fault.status == StoreStatus::timeout && Clock::now() >= latest;
    const bool is_servers = was_late || tells_about_server(fault);
    if (is_servers && make_do()) {
      fault = {};
    } else if (is_servers) {
      suspect(fault);
    }
  }
  lease.hold(std::move(connection));
  return lease;
}

Node::Lease Node::lease_idle(Use use) {
  std::unique_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::down || idle_.empty() || !is_free(use)) return {};
    occupy_place(use, connection);
  }
  Lease lease(this, use);
  while (connection && !connection->is_quiet()) connection = next_idle();
  if (connection) lease.hold(std::move(connection));
  return lease;
}

Node::Lease Node::lease_spare() {
  {
    std::lock_guard lock(mutex_);
    if (leased_ + 2 > settings_->options.pool) return {};
    if (idle_.empty()) wants_spares_ = true;
  }
  return lease_idle(Use::read);
}

// With the connections that there are, if there are any; the keeper finds out whether they work.
bool Node::make_do() {
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::up || (leased_ < 2 && idle_.empty())) return false;
    next_dial_ = Clock::now() + check_interval;
    next_tend_ = Clock::now();
  }
  on_change_();
  return true;
}

bool Node::is_free(Use use) const {
  const std::uint32_t most = settings_->options.pool;
  if (leased_ >= most) return false;
  if (use == Use::write && leased_to_write_ >= std::min(most_heavy, most / 2)) return false;
  if (use == Use::read_large && leased_to_read_large_ >= std::min(most_heavy, most / 2))
    return false;
  return !idle_.empty() || leased_ == 0 || Clock::now() >= next_dial_;
}

bool Node::wait_for_place(Use use, const StoreContext& context, Fault& fault,
                          std::unique_ptr<Connection>& idle) {
  std::unique_lock lock(mutex_);
  if (take_place(use, fault, idle)) return true;
  if (fault) return false;
  Waiter waiter{.use = use};
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  const auto is_served = [&] { return waiter.is_served; };
  if (!wait_until(waiter.changed, lock, context.cancel, context.deadline, is_served)) {
    waiting_.erase(place);
    const bool left = context.cancel.stop_requested();
    fault = {left ? StoreStatus::cancelled : StoreStatus::timeout, 0, "no connection was free"};
    return false;
  }
  fault = std::move(waiter.fault);
  idle = std::move(waiter.idle);
  return !fault;
}

// A place that becomes free goes to who has waited longest, and not to who happens to ask then:
// several threads that ask again and again would keep the places among them.
void Node::serve_waiting() {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Waiter& waiter = **next;
    if (!is_free(waiter.use)) {  // who waits for a limit of his use holds up no other
      ++next;
      continue;
    }
    occupy_place(waiter.use, waiter.idle);
    waiter.is_served = true;
    waiter.changed.notify_one();
    next = waiting_.erase(next);
  }
}

void Node::refuse_waiting() {
  for (Waiter* waiter : waiting_) {
    waiter->fault = why_down();
    waiter->is_served = true;
    waiter->changed.notify_one();
  }
  waiting_.clear();
}

Fault Node::why_down() const {
  return {StoreStatus::unavailable, fault_.error_number, fault_.detail};
}

void Node::count_lease(Use use, std::int32_t difference) {
  leased_ += difference;
  if (use == Use::write) leased_to_write_ += difference;
  if (use == Use::read_large) leased_to_read_large_ += difference;
}

bool Node::take_place(Use use, Fault& fault, std::unique_ptr<Connection>& idle) {
  if (state_ == State::down) {
    fault = why_down();
    return false;
  }
  if (!is_free(use)) return false;
  occupy_place(use, idle);
  return true;
}

void Node::occupy_place(Use use, std::unique_ptr<Connection>& idle) {
  count_lease(use, 1);
  if (idle_.empty()) {  // he makes one: while the server takes no more, one tries for all
    if (next_dial_ != Clock::time_point::min()) next_dial_ = Clock::now() + check_interval;
    return;
  }
  idle = std::move(idle_.back());
  idle_.pop_back();
  unused_ = std::min(unused_, idle_.size());
}

std::unique_ptr<Connection> Node::next_idle() {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto connection = std::move(idle_.back());
  idle_.pop_back();
  unused_ = std::min(unused_, idle_.size());
  return connection;
}

void Node::take_back(Use use, std::unique_ptr<Connection> connection) {
  if (connection) connection->set_waiting();
  {
    std::lock_guard lock(mutex_);
    count_lease(use, -1);
    // Of a server that went away meanwhile, what still works is not to be trusted.
    if (connection && state_ == State::up) idle_.push_back(std::move(connection));
    serve_waiting();
  }
}

std::unique_ptr<Connection> Node::connect(Clock::time_point deadline, const std::stop_token& cancel,
                                          Fault& fault) {
  Dialed dialed = dial(endpoint_, *settings_, deadline, cancel);
  fault = dialed.fault;
  if (dialed.connection) came_up(dialed);
  return std::move(dialed.connection);
}

void Node::came_up(const Dialed& dialed) {
  {
    std::lock_guard lock(mutex_);
    memory_ = dialed.memory;
    next_dial_ = Clock::time_point::min();
    const bool was_up = std::exchange(state_, State::up) == State::up;
    if (!was_up) max_value_bytes_ = no_limit;
    learn_limit(dialed.max_value_bytes);
    if (was_up) return;
    fault_ = {};
  }
  logger()->info("redis store {}: connected", endpoint_.text());
  on_change_();
}

void Node::learn_limit(const std::optional<std::uint64_t>& told) {
  tells_limit_ = told.has_value();
  if (told) max_value_bytes_ = *told;
}

void Node::refused_as_too_large(std::uint64_t bytes) {
  std::lock_guard lock(mutex_);
  max_value_bytes_ = std::min(max_value_bytes_.load(), bytes - 1);
}

void Node::suspect(const Fault& fault) {
  std::vector<std::unique_ptr<Connection>> closed;  // without the lock
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(state_, State::down) == State::down) return;
    fault_ = fault;
    memory_.reset();
    closed.swap(idle_);
    unused_ = 0;
    next_tend_ = Clock::now();
    refuse_waiting();
  }
  throttle_.log(spdlog::level::warn, "redis store {}: {}; tried again in the background",
                endpoint_.text(), fault.detail);
  on_change_();
}

Clock::time_point Node::tend(Clock::time_point now, const std::stop_token& cancel) {
  bool is_up = false;
  {
    std::lock_guard lock(mutex_);
    if (now < next_tend_) return next_tend_;
    is_up = state_ == State::up;
  }
  Fault fault;
  if (is_up && !answers_ping(cancel, fault)) {
    if (cancel.stop_requested()) return now;  // says nothing about the server
    suspect(fault);
    is_up = false;
  }
  if (is_up) add_spares(cancel);
  if (is_up) close_unused(now);
  if (!is_up) probe(cancel);
  std::lock_guard lock(mutex_);
  serve_waiting();  // more may be made again
  next_tend_ = Clock::now() + (state_ == State::up ? check_interval : next_pause());
  return next_tend_;
}

bool Node::answers_ping(const std::stop_token& cancel, Fault& fault) {
  StoreContext context;
  context.cancel = cancel;
  context.deadline = Clock::now() + settings_->options.timeout;
  // Of a server that takes no more connections, one that there is will do.
  while (watch_ && !watch_->is_quiet()) watch_ = next_idle();
  if (!watch_) {
    watch_ = connect(Clock::now() + settings_->options.connect_timeout, cancel, fault);
    return watch_ != nullptr || is_in_use();
  }
  Command ping;
  ping.head = encode_command({"PING"});
  std::vector<Command*> commands{&ping};
  Command memory;
  memory.head = encode_command({"INFO", "memory"});
  if (this->memory()) commands.push_back(&memory);  // who keeps it to himself is not asked again
  Command limit;
  limit.head = ask_value_limit();
  if (tells_limit_) commands.push_back(&limit);
  std::vector<std::unique_ptr<Exchange>> exchange;
  exchange.push_back(std::make_unique<Exchange>(*watch_, commands, context));
  drive(exchange, context, settings_->options.timeout);
  if (exchange.front()->state() == Exchange::State::done) {
    if (!ping.reply.is_error()) {
      std::lock_guard lock(mutex_);
      memory_ = parse_server_memory(memory.reply.text);
      if (tells_limit_) learn_limit(parse_value_limit(limit.reply));
      return true;
    }
    fault = fault_of(ping.reply);
  } else {
    fault = ping.fault;
  }
  watch_.reset();
  return false;
}

// As many as one call can use, while there is room for them. A server that takes no more is asked
// again when somebody wants them again.
void Node::add_spares(const std::stop_token& cancel) {
  {
    std::lock_guard lock(mutex_);
    if (!std::exchange(wants_spares_, false)) return;
  }
  for (std::size_t i = 1; i < most_lines && has_room_for_spare(); ++i) {
    Fault fault;
    auto spare = connect(Clock::now() + settings_->options.connect_timeout, cancel, fault);
    if (!spare) return;
    spare->set_waiting();
    std::lock_guard lock(mutex_);
    idle_.insert(idle_.begin(), std::move(spare));
    serve_waiting();
  }
}

// Other clients of a server that takes a limited number want them.
void Node::close_unused(Clock::time_point now) {
  std::vector<std::unique_ptr<Connection>> closed;  // without the lock
  std::lock_guard lock(mutex_);
  if (now < next_trim_) return;
  next_trim_ = now + trim_interval;
  const std::size_t resting = idle_.size();
  const std::size_t too_many = resting > most_resting ? resting - most_resting : 0;
  const auto end = idle_.begin() + static_cast<std::ptrdiff_t>(std::min(unused_, too_many));
  std::move(idle_.begin(), end, std::back_inserter(closed));
  idle_.erase(idle_.begin(), end);
  unused_ = idle_.size();
}

bool Node::has_room_for_spare() const {
  std::lock_guard lock(mutex_);
  return state_ == State::up && leased_ + idle_.size() < settings_->options.pool;
}

bool Node::is_in_use() const {
  std::lock_guard lock(mutex_);
  return leased_ > 0 || !idle_.empty();
}

void Node::probe(const std::stop_token& cancel) {
  Fault fault;
  watch_ = connect(Clock::now() + settings_->options.connect_timeout, cancel, fault);
  if (watch_) {
    pause_ = {};
    return;
  }
  if (cancel.stop_requested()) return;
  suspect(fault);
  std::lock_guard lock(mutex_);
  fault_ = fault;
}

// Twice as long each time, and never at the same moment as others who lost the same server.
Clock::duration Node::next_pause() {
  pause_ = std::clamp<Clock::duration>(pause_ * 2, first_pause, longest_pause);
  return std::chrono::duration_cast<Clock::duration>(
      pause_ * std::uniform_real_distribution<double>(0.5, 1.0)(random_));
}

}  // namespace vitrove::redis
