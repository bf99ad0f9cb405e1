#include "cache/flight_board.h"

#include <utility>

#include "base/stoppable_wait.h"

namespace vitrove {

FlightLead& FlightLead::operator=(FlightLead&& other) noexcept {
  if (this != &other) {
    step_down();
    board_ = other.board_;
    flight_ = std::move(other.flight_);
  }
  return *this;
}

void FlightLead::step_down() noexcept {
  if (const auto flight = std::exchange(flight_, nullptr)) board_->step_down(*flight);
}

FlightSeat& FlightSeat::operator=(FlightSeat&& other) noexcept {
  if (this != &other) {
    leave();
    board_ = other.board_;
    flight_ = std::move(other.flight_);
  }
  return *this;
}

void FlightSeat::leave() noexcept {
  if (const auto flight = std::exchange(flight_, nullptr)) board_->leave(*flight);
}

FlightBoard::Claim FlightBoard::claim(const EmbeddingKey& key, const FillOwner& owner) {
  Shard& shard = core_.table().shard_of(key);
  std::lock_guard lock(shard.mutex);
  if (EntryPin ready = core_.table().find_locked(shard, key)) return ready;

  const auto found = shard.flights.find(key);
  if (found != shard.flights.end() && !is_stale(*found->second)) {
    const std::shared_ptr<Flight>& flight = found->second;
    if (flight->stage == Flight::Stage::vacant) {
      flight->stage = Flight::Stage::led;
      return FlightLead(*this, flight);
    }
    ++flight->followers;
    return FlightSeat(*this, flight);
  }
  // Nobody is at it, or only somebody who started before a flush: he goes on without a place.
  auto flight = std::make_shared<Flight>(key, owner, core_.flushes().now());
  if (shard.flights.insert_or_assign(key, flight).second) {
    under_way_.fetch_add(1, std::memory_order_relaxed);
  }
  return FlightLead(*this, std::move(flight));
}

FlightBoard::Outcome FlightBoard::wait(FlightSeat& seat, Clock::time_point deadline,
                                       const std::stop_token& cancel) {
  Flight& flight = *seat.flight_;
  std::unique_lock lock(shard_of(flight).mutex);
  const auto over = [&flight] { return flight.stage != Flight::Stage::led; };
  wait_until(flight.changed, lock, cancel, deadline, over);
  switch (flight.stage) {
    case Flight::Stage::led:
      return {};
    case Flight::Stage::done:
      return flight.result.another();
    case Flight::Stage::failed:
      throw Error(*flight.error);
    case Flight::Stage::vacant:
      break;
  }
  flight.stage = Flight::Stage::led;
  --flight.followers;
  return FlightLead(*this, std::exchange(seat.flight_, nullptr));
}

EntryPin FlightBoard::complete_with(FlightLead lead, EntryPin entry, PutCallback queue_puts) {
  Flight& flight = *lead.flight_;
  const Digest256 model = entry->details->header.model_fingerprint;
  EntryAdmission admission(core_, entry);
  Settled settled;
  {
    Shard& shard = shard_of(flight);
    std::lock_guard lock(shard.mutex);
    const bool current = is_current(shard, flight);
    if (current) {
      settled = settle(shard, flight, std::move(entry), admission);
    } else {
      settled.winner = std::move(entry);
    }
    if (current && !settled.ready_before &&
        !core_.flushes().flushed_since(flight.started, model, FlushLog::Side::stores)) {
      queue_puts.call(queue_puts.target);
    }
    flight.result = settled.winner.another();
    flight.stage = Flight::Stage::done;
    take_off(shard, flight);
    flight.changed.notify_all();
  }
  lead.flight_ = nullptr;  // until here, whatever throws leaves the lead to a follower
  return std::move(settled.winner);
}

FlightBoard::Settled FlightBoard::settle(Shard& shard, const Flight& flight, EntryPin entry,
                                         EntryAdmission& admission) {
  if (EntryPin ready = core_.table().find_locked(shard, flight.key)) {
    return {std::move(ready), true};
  }
  const Digest256& model = entry->details->header.model_fingerprint;
  if (core_.flushes().flushed_since(flight.started, model, FlushLog::Side::pool)) {
    return {std::move(entry)};
  }
  if (admission) {
    core_.go_live_locked(shard, flight.key, *entry);
    admission.went_live();
    return {std::move(entry)};
  }
  // Live under another key. When it is dropped in this moment its list of keys is closed already,
  // and the key stays without an entry; so it does when it was dropped before.
  if (!entry->is_dropped() && entry->add_key(flight.key)) {
    core_.table().insert_locked(shard, flight.key, *entry);
  }
  return {std::move(entry)};
}

bool FlightBoard::offer(const EmbeddingKey& key, const EntryPin& entry) {
  Shard& shard = core_.table().shard_of(key);
  std::lock_guard lock(shard.mutex);
  if (entry->is_dropped() || core_.table().find_locked(shard, key)) return false;
  if (!entry->add_key(key)) return false;
  core_.table().insert_locked(shard, key, *entry);
  const auto found = shard.flights.find(key);
  if (found == shard.flights.end()) return true;
  const std::shared_ptr<Flight> flight = found->second;
  flight->result = entry.another();
  flight->stage = Flight::Stage::done;
  take_off(shard, *flight);
  flight->changed.notify_all();
  return true;
}

void FlightBoard::fail(FlightLead lead, const Error& error) {
  const auto flight = std::exchange(lead.flight_, nullptr);
  Shard& shard = shard_of(*flight);
  std::lock_guard lock(shard.mutex);
  flight->error = error;
  flight->stage = Flight::Stage::failed;
  take_off(shard, *flight);
  flight->changed.notify_all();
}

void FlightBoard::detach(const EmbeddingKey& key, const std::optional<Digest256>& tenant) {
  Shard& shard = core_.table().shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.flights.find(key);
  if (found == shard.flights.end()) return;
  const std::shared_ptr<Flight> flight = found->second;
  const auto& owner = flight->owner.tenant;  // not known while an alias is followed
  if (!tenant || !owner || owner == tenant) take_off(shard, *flight);
}

bool FlightBoard::is_stale(const Flight& flight) const {
  const FlushLog& flushes = core_.flushes();
  if (!flight.owner.model) return flushes.now() != flight.started;
  return flushes.flushed_since(flight.started, *flight.owner.model, FlushLog::Side::pool);
}

bool FlightBoard::is_current(const Shard& shard, const Flight& flight) const {
  const auto found = shard.flights.find(flight.key);
  return found != shard.flights.end() && found->second.get() == &flight;
}

void FlightBoard::take_off(Shard& shard, const Flight& flight) {
  if (!is_current(shard, flight)) return;
  shard.flights.erase(flight.key);
  under_way_.fetch_sub(1, std::memory_order_relaxed);
}

// With followers the lead is open to the first who looks; notify_all, since a follower may leave
// instead of taking it.
void FlightBoard::step_down(Flight& flight) noexcept {
  Shard& shard = shard_of(flight);
  std::lock_guard lock(shard.mutex);
  if (flight.stage != Flight::Stage::led) return;  // somebody else ended it
  flight.stage = Flight::Stage::vacant;
  if (flight.followers == 0) take_off(shard, flight);
  flight.changed.notify_all();
}

void FlightBoard::leave(Flight& flight) noexcept {
  Shard& shard = shard_of(flight);
  std::lock_guard lock(shard.mutex);
  --flight.followers;
  if (flight.followers == 0 && flight.stage == Flight::Stage::vacant) take_off(shard, flight);
}

}  // namespace vitrove
