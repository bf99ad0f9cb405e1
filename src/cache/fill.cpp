// Tickets: the duty to fill a key, and the wait for somebody who has it.
#include <algorithm>
#include <utility>

#include "cache/controller_impl.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

bool is_about_the_item(ErrorCode code) {
  return code == ErrorCode::invalid_argument || code == ErrorCode::too_large ||
         code == ErrorCode::unsupported_format;
}

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorCode::internal, std::string("the encoder's result was refused: ") + what);
}

std::uint64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

void check_shape(const ValueExpectation& expected, const EncodedRows& encoded) {
  const std::uint64_t row_bytes = std::uint64_t{expected.dim} * element_size(expected.dtype);
  if (encoded.rows == 0 || row_bytes == 0) refuse("it has no rows");
  if (expected.rows && *expected.rows != encoded.rows) refuse("the number of rows is wrong");
  if (encoded.bytes.size() != encoded.rows * row_bytes) refuse("its size is wrong");
  if (encoded.side.alias_target) refuse("its side data are an alias's");
}

ValueHeader header_of(const ValueExpectation& expected, const EncodedRows& encoded,
                      std::size_t side_bytes) {
  ValueHeader header;
  header.key = expected.key;
  header.model_fingerprint = expected.model_fingerprint;
  header.tenant = expected.tenant;
  header.modality = expected.modality;
  header.dtype = expected.dtype;
  header.rows = encoded.rows;
  header.dim = expected.dim;
  header.side_bytes = static_cast<std::uint32_t>(side_bytes);
  header.created_us = now_us();
  header.encode_cost_us =
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, encoded.encode_cost.count()));
  return header;
}

std::vector<std::byte> encode_side(const SideData& side) {
  try {
    return side.encode();
  } catch (const Error&) {
    refuse("its side data are too large, or hold what is no time");
  }
}

}  // namespace

// --- rows into pages ---

EntryPin EmbeddingCacheController::Impl::write_rows(const ValueExpectation& expected,
                                                    const EncodedRows& encoded,
                                                    const Completion& ready) {
  check_shape(expected, encoded);
  EntrySide side{encoded.side, encode_side(encoded.side)};
  ValueHeader header = header_of(expected, encoded, side.bytes.size());

  PageLease pages;
  if (auto runs = core->allocate(header.payload_bytes(), header.row_bytes(), header.modality)) {
    pages = PageLease(core->pool(), std::move(*runs));
  }
  if (ready) ready();  // only now are the encoder's bytes there

  std::vector<std::byte> heap;
  std::vector<MutableBuffer> destination;
  if (pages) {
    for (const auto& segment : pages.runs().segments) {
      destination.push_back(core->pool().segment_bytes(segment));
    }
  } else {
    heap.resize(header.payload_bytes());
    destination.emplace_back(heap);
  }
  const WrittenRows written =
      vitrove::write_rows(encoded.bytes, side.bytes, expected.dtype, destination);
  if (!written.finite) refuse("it holds NaN or infinity");
  header.payload_checksum = written.checksum;

  if (pages) return core->make_pooled(header, std::move(side), pages.take());
  return core->make_uncached(header, std::move(side), std::move(heap),
                             core->why_uncached(header.payload_bytes(), header.row_bytes()));
}

void EmbeddingCacheController::Impl::note_encode_cost(const Digest256& model,
                                                      std::chrono::microseconds cost) {
  encode_costs.note(model, cost);
  std::int64_t longest = longest_encode_us.load(std::memory_order_relaxed);
  while (cost.count() > longest && !longest_encode_us.compare_exchange_weak(
                                       longest, cost.count(), std::memory_order_relaxed)) {
  }
}

// Longer than anybody's encode; then it is quicker to do it oneself.
Clock::duration EmbeddingCacheController::Impl::feature_wait_limit() const noexcept {
  const std::chrono::microseconds longest(longest_encode_us.load(std::memory_order_relaxed));
  return std::max<Clock::duration>(std::chrono::seconds(5), 4 * longest);
}

// --- puts that wait for uses ---

bool EmbeddingCacheController::Impl::is_put_due(const Entry& entry) const noexcept {
  return options.put_after_uses <= 1 ||
         entry.details->uses.load(std::memory_order_relaxed) >= options.put_after_uses;
}

void EmbeddingCacheController::Impl::note_use(Entry& entry) {
  const std::uint32_t uses = entry.details->uses.fetch_add(1, std::memory_order_relaxed) + 1;
  if (entry.pooled && uses == options.put_after_uses) put_with_aliases(entry);
}

// Under the lock of its shard, like every put: who flushes or removes it afterwards finds what was
// queued.
void EmbeddingCacheController::Impl::put_with_aliases(Entry& entry) {
  entry.add_pin();
  const EntryPin pin(&entry);
  const auto value = put_value_of(*core, pin);
  EntryTable::Shard& shard = core->table().shard_of(entry.key);
  std::lock_guard lock(shard.mutex);
  if (entry.is_gone()) return;
  const auto together = tiers.gather_puts();
  tiers.put(value, tiers.count());
  for (const EmbeddingKey& alias : entry.alias_keys()) {
    tiers.put(alias_value_of(alias, pin), tiers.count());
  }
}

// --- FillTicket ---

void FillTicket::State::count_miss() {
  if (std::exchange(counted, true)) return;
  impl.core->count_lookup(expected, LookupResult::miss);
}

void FillTicket::State::count_hit(Entry& entry, LookupResult result) {
  if (std::exchange(counted, true)) return;
  impl.count_hit(entry, result);
}

void FillTicket::State::give_up() {
  count_miss();
  drop_feature();
  question = {};
  claim.let_go();
  lead.step_down();
}

void FillTicket::State::lead_feature(FlightLead led) {
  feature_lead = std::move(led);
  feature_holder = impl.feature_leads.add();
}

void FillTicket::State::drop_feature() {
  feature_lead.step_down();
  if (feature_holder) impl.feature_leads.remove(*feature_holder);
  feature_holder.reset();
}

// The item has the very features of an embedding that is there: its key becomes an alias.
EntryPin FillTicket::State::serve(EntryPin entry) {
  const bool is_twin = entry->key != expected.key;
  const auto alias = is_twin ? alias_value_of(expected.key, entry) : nullptr;
  const EntryPin target = entry.another();
  EntryPin winner = impl.board.complete(std::move(lead), std::move(entry), [&] {
    if (is_twin && !target->is_gone() && impl.is_put_due(*target)) {
      impl.tiers.put(alias, impl.tiers.count(), std::move(claim));
    }
  });
  claim.let_go();  // no put will follow
  drop_feature();
  return winner;
}

EntryPin FillTicket::State::publish(EntryPin entry) {
  if (feature) {
    // A twin may have come first.
    if (EntryPin twin = impl.find_ready(*feature); twin && twin->matches(expected)) {
      return serve(std::move(twin));
    }
  }
  const auto together = impl.tiers.gather_puts();  // the value, and the alias that leads to it
  const bool is_due = !impl.tiers.empty() && impl.is_put_due(*entry);
  const auto value = is_due ? put_value_of(*impl.core, entry) : nullptr;
  bool is_put = false;
  EntryPin winner = impl.board.complete(std::move(lead), std::move(entry), [&] {
    if (!is_due) return;
    impl.tiers.put(value, impl.tiers.count(), std::move(claim));
    is_put = value != nullptr;
  });
  claim.let_go();  // no put will follow
  if (!feature) return winner;

  const auto alias = alias_value_of(*feature, winner);
  const auto put_alias = [&] {
    // Else it would lead nowhere.
    const bool has_target =
        winner->pooled ? !winner->is_gone() && impl.is_put_due(*winner) : is_put;
    if (has_target) impl.tiers.put(alias, impl.tiers.count());
  };
  if (feature_lead) {
    impl.board.complete(std::move(feature_lead), winner.another(), put_alias);
  } else if (impl.board.offer(*feature, winner)) {
    put_alias();
  }
  drop_feature();
  return winner;
}

FillTicket::FillTicket(std::unique_ptr<State> state) : state_(std::move(state)) {}
FillTicket::FillTicket(FillTicket&&) noexcept = default;
FillTicket& FillTicket::operator=(FillTicket&&) noexcept = default;
FillTicket::~FillTicket() = default;

const EmbeddingKey& FillTicket::key() const { return state_->expected.key; }

std::optional<std::pair<EmbeddingView, Source>> FillTicket::resolve_features(
    const EmbeddingKey& feature, const RequestContext& context) {
  State& state = *state_;
  auto& impl = state.impl;
  if (!state.lead || feature == state.expected.key) return std::nullopt;
  state.drop_feature();
  state.feature = feature;
  ValueExpectation expected = state.expected;
  expected.key = feature;
  const auto serve = [&](EntryPin entry, Source source, LookupResult result) {
    EntryPin winner = state.serve(std::move(entry));
    state.count_hit(*winner, result);
    return std::make_pair(ControllerAccess::view(std::move(winner)), source);
  };

  auto claimed = impl.claim(expected);
  if (auto* ready = std::get_if<EntryPin>(&claimed)) {
    return serve(std::move(*ready), Source::local, LookupResult::local);
  }
  if (auto* seat = std::get_if<FlightSeat>(&claimed)) {
    if (impl.feature_leads.this_thread_leads()) return std::nullopt;
    const auto deadline = std::min(context.deadline, Clock::now() + impl.feature_wait_limit());
    auto outcome = impl.board.wait(*seat, deadline, context.cancel);
    if (auto* entry = std::get_if<EntryPin>(&outcome); entry && (*entry)->matches(expected)) {
      return serve(std::move(*entry), Source::joined, LookupResult::joined);
    }
    // Who led before has asked the stores already.
    if (auto* lead = std::get_if<FlightLead>(&outcome)) state.lead_feature(std::move(*lead));
    return std::nullopt;
  }

  LookupItem item{std::get<FlightLead>(std::move(claimed)), WantedValue::of(expected), {}};
  if (!impl.tiers.empty()) {
    LookupBudget time = impl.budget(context, state.spent);
    impl.lookup.run({&item, 1}, time, context);
    state.spent += time.spent();
  }
  if (!item.entry) {
    state.lead_feature(std::move(item.lead));
    return std::nullopt;
  }
  const bool local = item.source == Source::local;
  return serve(std::move(item.entry), item.source,
               local ? LookupResult::local : LookupResult::store);
}

EmbeddingView FillTicket::publish(const EncodedRows& encoded, const Completion& ready) {
  State& state = *state_;
  if (!state.lead) throw Error(ErrorCode::internal, "a ticket was served twice");
  try {
    EntryPin entry = state.impl.write_rows(state.expected, encoded, ready);
    entry->details->uses.store(1, std::memory_order_relaxed);
    state.impl.note_encode_cost(state.expected.model_fingerprint, encoded.encode_cost);
    EntryPin winner = state.publish(std::move(entry));
    state.count_miss();
    return ControllerAccess::view(std::move(winner));
  } catch (...) {
    state.give_up();
    throw;
  }
}

void FillTicket::fail(const Error& error) {
  State& state = *state_;
  if (!is_about_the_item(error.code())) return state.give_up();
  state.count_miss();
  state.drop_feature();
  state.question = {};
  state.claim.let_go();
  if (state.lead) state.impl.board.fail(std::move(state.lead), error);
}

// --- JoinTicket ---

void JoinTicket::State::count_joined() {
  if (std::exchange(counted, true)) return;
  impl.core->count_lookup(expected, LookupResult::joined);
}

JoinTicket::JoinTicket(std::unique_ptr<State> state) : state_(std::move(state)) {}
JoinTicket::JoinTicket(JoinTicket&&) noexcept = default;
JoinTicket& JoinTicket::operator=(JoinTicket&&) noexcept = default;
JoinTicket::~JoinTicket() = default;

std::variant<EmbeddingView, FillTicket> JoinTicket::wait(const RequestContext& context) {
  State& state = *state_;
  auto& impl = state.impl;
  const auto take_over = [&](FlightLead lead) {
    state.counted = true;  // the fill counts it
    return ControllerAccess::fill(impl, std::move(lead), state.expected, state.spent);
  };
  const auto hand_out = [&](EntryPin entry) {
    if (!std::exchange(state.counted, true)) impl.count_hit(*entry, LookupResult::joined);
    return ControllerAccess::view(std::move(entry));
  };
  for (;;) {
    auto outcome = impl.board.wait(state.seat, context.deadline, context.cancel);
    if (auto* lead = std::get_if<FlightLead>(&outcome)) return take_over(std::move(*lead));
    auto* const entry = std::get_if<EntryPin>(&outcome);
    if (entry == nullptr) {
      state.count_joined();
      if (context.cancel.stop_requested()) {
        throw Error(ErrorCode::cancelled, "the request was cancelled");
      }
      throw Error(ErrorCode::deadline_exceeded, "the request took too long");
    }
    if ((*entry)->matches(state.expected)) return hand_out(std::move(*entry));

    // The fill was for somebody who expected something else under this key.
    impl.drop_mismatch(*entry);
    auto claimed = impl.claim(state.expected);
    if (auto* ready = std::get_if<EntryPin>(&claimed)) return hand_out(std::move(*ready));
    if (auto* lead = std::get_if<FlightLead>(&claimed)) return take_over(std::move(*lead));
    state.seat = std::get<FlightSeat>(std::move(claimed));
  }
}

}  // namespace vitrove
