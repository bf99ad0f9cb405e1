// FlightBoard: one fill a key (single flight).
//
// A Flight is the fill of one key that is under way: somebody leads it (loads or encodes), others
// follow. It stands in the shard of its key, and all its state is guarded by that shard's mutex, so
// that "not in the table, nobody at it: I lead" is one step, and so is "the entry is in the table,
// the flight is over". There is no gap between the two in which a late-comer could find neither.
//
//   led      -> done      the leader published; followers get the entry
//   led      -> failed    an error of the item itself; followers get it
//   led      -> vacant    the leader failed otherwise or left; the first who looks takes over,
//                         be it a waiting follower or a new request
//
// A flight is detached when it no longer stands in the table: a flush or a removal came, or a newer
// flight replaced it. Its leader may finish and its followers are served, but nothing is published.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "cache/cache_core.h"

namespace vitrove {

class FlightBoard;

// Whose embedding a fill makes, as far as that is known before a value was seen.
struct FillOwner {
  std::optional<Digest256> model;
  std::optional<Digest256> tenant;
};

struct Flight {
  enum class Stage : std::uint8_t { led, vacant, done, failed };

  Flight(const EmbeddingKey& flight_key, const FillOwner& fill_owner, FlushLog::Moment moment)
      : key(flight_key), owner(fill_owner), started(moment) {}

  const EmbeddingKey key;
  const FillOwner owner;
  const FlushLog::Moment started;

  // Guarded by the mutex of the key's shard.
  Stage stage = Stage::led;
  EntryPin result;             // done
  std::optional<Error> error;  // failed
  std::size_t followers = 0;
  std::condition_variable_any changed;
};

// The lead of a flight. Destroying it undone means that the leader left.
class FlightLead {
 public:
  FlightLead() = default;
  FlightLead(FlightBoard& board, std::shared_ptr<Flight> flight)
      : board_(&board), flight_(std::move(flight)) {}
  FlightLead(FlightLead&&) noexcept = default;
  FlightLead& operator=(FlightLead&& other) noexcept;
  ~FlightLead() { step_down(); }

  explicit operator bool() const { return flight_ != nullptr; }
  const Flight& flight() const { return *flight_; }
  void step_down() noexcept;

 private:
  friend class FlightBoard;
  FlightBoard* board_ = nullptr;
  std::shared_ptr<Flight> flight_;
};

// A follower's place.
class FlightSeat {
 public:
  FlightSeat() = default;
  FlightSeat(FlightBoard& board, std::shared_ptr<Flight> flight)
      : board_(&board), flight_(std::move(flight)) {}
  FlightSeat(FlightSeat&&) noexcept = default;
  FlightSeat& operator=(FlightSeat&& other) noexcept;
  ~FlightSeat() { leave(); }

  const Flight& flight() const { return *flight_; }
  void leave() noexcept;

 private:
  friend class FlightBoard;
  FlightBoard* board_ = nullptr;
  std::shared_ptr<Flight> flight_;
};

class FlightBoard {
 public:
  using Clock = std::chrono::steady_clock;

  explicit FlightBoard(CacheCore& core) : core_(core) {}

  // READY, or a seat, or the lead: one step.
  using Claim = std::variant<EntryPin, FlightSeat, FlightLead>;
  Claim claim(const EmbeddingKey& key, const FillOwner& owner);

  // The entry, the lead, or nothing when time is up or the wait was cancelled. Throws the leader's
  // Error.
  using Outcome = std::variant<std::monostate, EntryPin, FlightLead>;
  Outcome wait(FlightSeat& seat, Clock::time_point deadline, const std::stop_token& cancel);

  // Ends the flight with `entry`, which is live already (then the key becomes an alias of it) or
  // private. An entry that is READY under the key by now wins over it; the answer is who won.
  // `queue_puts` is called under the shard's lock when the stores may have it: whoever removes or
  // flushes afterwards finds what was queued.
  template <typename QueuePuts>
  EntryPin complete(FlightLead lead, EntryPin entry, QueuePuts queue_puts) {
    return complete_with(std::move(lead), std::move(entry),
                         {&queue_puts, [](void* f) { (*static_cast<QueuePuts*>(f))(); }});
  }

  // Maps a live entry under a further key, whose flight, if there is one, ends with it. False when
  // an entry is there already, or this one is not live any more.
  bool offer(const EmbeddingKey& key, const EntryPin& entry);

  // An error of the item itself: followers at this moment share it.
  void fail(FlightLead lead, const Error& error);

  // Takes the flight of `key` off the board: it publishes nothing, and later requests start anew.
  // With `tenant`, only a flight that is known to be his.
  void detach(const EmbeddingKey& key, const std::optional<Digest256>& tenant);

  std::uint64_t under_way() const noexcept { return under_way_.load(std::memory_order_relaxed); }

 private:
  friend class FlightLead;
  friend class FlightSeat;
  using Shard = EntryTable::Shard;
  struct PutCallback {
    void* target;
    void (*call)(void*);
  };

  Shard& shard_of(const Flight& flight) { return core_.table().shard_of(flight.key); }
  EntryPin complete_with(FlightLead lead, EntryPin entry, PutCallback queue_puts);
  // The following are called under the shard's mutex.
  struct Settled {
    EntryPin winner;
    bool ready_before = false;
  };
  Settled settle(Shard& shard, const Flight& flight, EntryPin entry, EntryAdmission& admission);
  bool is_stale(const Flight& flight) const;
  bool is_current(const Shard& shard, const Flight& flight) const;
  void take_off(Shard& shard, const Flight& flight);

  void step_down(Flight& flight) noexcept;
  void leave(Flight& flight) noexcept;

  CacheCore& core_;
  std::atomic<std::uint64_t> under_way_{0};
};

}  // namespace vitrove
