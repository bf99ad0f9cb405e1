// One server: a small pool of connections to it, and whether it is there.
//
// While the server is away nobody waits for it: lease() fails at once, and only the keeper's
// probe() tries again. All methods are thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "base/log.h"
#include "stores/redis/dial.h"

namespace vitrove::redis {

// Connections that one batch uses at a time.
constexpr std::size_t most_lines = 4;

// Connections that large values (get_plan.h) come over at a time, and those that puts use. A
// server's core has the parts of so many in its cache; of fifty it writes each part twice to
// memory, and gives half as many bytes a second. What it has received of a put counts for its
// maxmemory.
constexpr std::uint32_t most_heavy = 8;
// So many are kept open though nobody uses them.
constexpr std::size_t most_resting = 8;

enum class Use : std::uint8_t { read, read_large, write };

class Node {
 public:
  // `on_change` is called, from any thread, when the server goes away or comes back.
  Node(Endpoint endpoint, std::shared_ptr<const Settings> settings,
       std::function<void()> on_change);

  // A connection that is the holder's own until it is given back; without a word it is closed.
  class Lease {
   public:
    Lease() = default;
    Lease(Node* node, Use use) : node_(node), use_(use) {}
    Lease(Lease&& other) noexcept
        : node_(std::exchange(other.node_, nullptr)),
          use_(other.use_),
          connection_(std::move(other.connection_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (node_ != nullptr) node_->take_back(use_, nullptr);
    }

    void hold(std::unique_ptr<Connection> connection) { connection_ = std::move(connection); }
    Connection& connection() { return *connection_; }
    // It owes no answer.
    void give_back() { std::exchange(node_, nullptr)->take_back(use_, std::move(connection_)); }
    explicit operator bool() const { return connection_ != nullptr; }

   private:
    Node* node_ = nullptr;
    Use use_ = Use::read;
    std::unique_ptr<Connection> connection_;
  };

  // Waits until one is free, or makes one. Empty with `fault` filled in when there is none. That no
  // more can be made says nothing about those that there are: then it waits for one of them.
  Lease lease(Use use, const StoreContext& context, Fault& fault);
  // The same without waiting for other holders: empty without a fault when all are in use.
  Lease lease_unawaited(Use use, const StoreContext& context, Fault& fault);
  // One that is there already, or nothing.
  Lease lease_idle(Use use);
  // One more for a reader who has one, if it rests and others are left one. When none rests, the
  // keeper makes some within a second, for those who ask then.
  Lease lease_spare();

  // The server cannot be reached, or does not answer. Connections that wait for use are closed.
  void suspect(const Fault& fault);

  // The keeper's: asks a server that is there for a sign of life, and connects to one that is not.
  // Returns when it wants to be called again.
  Clock::time_point tend(Clock::time_point now, const std::stop_token& cancel);

  enum class State { unknown, up, down };
  State state() const;
  Fault fault() const;  // when down
  const Endpoint& endpoint() const { return endpoint_; }
  // The server's own limit as it told it last, or what its refusals have shown; the largest number
  // when it shows nothing.
  std::uint64_t max_value_bytes() const { return max_value_bytes_.load(); }
  // It has refused a value of so many bytes as too large. Believed until it tells a limit, or was
  // away: what comes back may have another one.
  void refused_as_too_large(std::uint64_t bytes);
  // As it said last, if it does; nothing when it is away.
  std::optional<ServerMemory> memory() const;

 private:
  // Its owner's, on his stack.
  struct Waiter {
    const Use use;
    bool is_served = false;            // he has a place, or is told why there is none
    std::unique_ptr<Connection> idle;  // that comes with the place, if there is one
    Fault fault;
    std::condition_variable_any changed;
  };

  // A place is the right to have a connection.
  bool wait_for_place(Use use, const StoreContext& context, Fault& fault,
                      std::unique_ptr<Connection>& idle);
  Lease lease_at_place(Use use, std::unique_ptr<Connection> connection, const StoreContext& context,
                       Fault& fault);
  // Under the lock:
  bool is_free(Use use) const;
  void count_lease(Use use, std::int32_t difference);
  bool take_place(Use use, Fault& fault, std::unique_ptr<Connection>& idle);
  void occupy_place(Use use, std::unique_ptr<Connection>& idle);
  void serve_waiting();
  void refuse_waiting();
  Fault why_down() const;

  bool make_do();
  void add_spares(const std::stop_token& cancel);
  void close_unused(Clock::time_point now);
  bool has_room_for_spare() const;
  std::unique_ptr<Connection> next_idle();
  void take_back(Use use, std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connect(Clock::time_point deadline, const std::stop_token& cancel,
                                      Fault& fault);
  void came_up(const Dialed& dialed);
  void learn_limit(const std::optional<std::uint64_t>& told);
  bool answers_ping(const std::stop_token& cancel, Fault& fault);
  bool is_in_use() const;
  void probe(const std::stop_token& cancel);
  Clock::duration next_pause();

  static constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();

  const Endpoint endpoint_;
  const std::shared_ptr<const Settings> settings_;
  const std::function<void()> on_change_;
  std::atomic<std::uint64_t> max_value_bytes_{no_limit};
  std::atomic<bool> tells_limit_{false};  // who hides it is not asked again
  LogThrottle throttle_{std::chrono::minutes(1)};

  mutable std::mutex mutex_;
  std::list<Waiter*> waiting_;  // who came first is first
  State state_ = State::unknown;
  Fault fault_;
  std::optional<ServerMemory> memory_;
  std::vector<std::unique_ptr<Connection>> idle_;  // used last at the end
  std::uint32_t leased_ = 0;
  std::uint32_t leased_to_write_ = 0;
  std::uint32_t leased_to_read_large_ = 0;
  bool wants_spares_ = false;
  Clock::time_point next_dial_ = Clock::time_point::min();  // while there are others
  Clock::time_point next_tend_ = Clock::time_point::min();
  std::size_t unused_ = 0;  // of `idle_`, from its front: by nobody since next_trim_ was set
  Clock::time_point next_trim_ = Clock::time_point::min();

  // The keeper's alone.
  std::unique_ptr<Connection> watch_;
  Clock::duration pause_{};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace vitrove::redis
