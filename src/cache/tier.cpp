#include "cache/tier.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace vitrove {
namespace {

// How long a bad value that nobody replaced is left alone.
constexpr std::chrono::seconds avoid_time{30};
constexpr std::size_t max_bad_keys = 65'536;

bool is_known(StoreStatus status) {
  return static_cast<std::uint8_t>(status) <= static_cast<std::uint8_t>(StoreStatus::conflict);
}

}  // namespace

Tier::Tier(std::shared_ptr<EmbeddingStore> store, std::string name, const TierOptions& options)
    : store_(std::move(store)),
      name_(std::move(name)),
      read_breaker_(options.breaker_faults, options.breaker_pause),
      write_breaker_(options.breaker_faults, options.breaker_pause) {}

// Throws std::bad_alloc, but not once the call was made.
template <typename Call>
std::vector<StoreResult> Tier::guarded(std::size_t keys, Call call) {
  std::vector<StoreResult> failed(keys, StoreResult{StoreStatus::io_error});
  std::vector<StoreResult> results;
  try {
    results = call();
  } catch (const std::exception& error) {
    throttle_.log(spdlog::level::err, "store {} threw: {}", name_, error.what());
    return failed;
  } catch (...) {
    return failed;
  }
  // With a wrong number of results nobody knows which key they are about.
  if (results.size() != keys) return failed;
  for (StoreResult& result : results) {
    if (!is_known(result.status)) result = {StoreStatus::io_error};
  }
  return results;
}

StoreCapabilities Tier::capabilities() const noexcept {
  try {
    return store_->capabilities();
  } catch (...) {
    return {};
  }
}

StoreHealth Tier::health() const noexcept {
  try {
    return store_->health();
  } catch (...) {
    return {StoreState::down, "the store could not be asked", {}, {}, {}};
  }
}

std::vector<StoreResult> Tier::exist(std::span<const EmbeddingKey> keys,
                                     const StoreContext& context) {
  return guarded(keys.size(), [&] { return store_->batch_is_exist(keys, context); });
}

std::vector<StoreResult> Tier::get(std::span<const EmbeddingKey> keys,
                                   std::span<const MutableBufferList> buffers,
                                   const StoreContext& context) {
  return guarded(keys.size(),
                 [&] { return store_->batch_get_into_multi_buffers(keys, buffers, context); });
}

std::vector<StoreResult> Tier::put(std::span<const EmbeddingKey> keys,
                                   std::span<const ConstBufferList> buffers, PutMode mode,
                                   const StoreContext& context) {
  auto results = guarded(keys.size(), [&] {
    return store_->batch_put_from_multi_buffers(keys, buffers, mode, context);
  });
  const bool has_shown_a_limit =
      std::ranges::find(results, StoreStatus::too_large, &StoreResult::status) != results.end();
  if (has_shown_a_limit) say_too_large(capabilities().max_value_bytes);
  return results;
}

std::vector<StoreResult> Tier::remove(std::span<const EmbeddingKey> keys,
                                      const StoreContext& context) {
  return guarded(keys.size(), [&] { return store_->batch_remove(keys, context); });
}

StoreResult Tier::list(const ListOptions& options,
                       const std::function<bool(const ListedValue&)>& visit,
                       const StoreContext& context) {
  return guarded(
      1, [&] { return std::vector<StoreResult>{store_->list(options, visit, context)}; })[0];
}

StoreResult Tier::claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                        const StoreContext& context) {
  return guarded(
      1, [&] { return std::vector<StoreResult>{store_->claim(key, ttl, token, context)}; })[0];
}

StoreResult Tier::renew(const EmbeddingKey& key, const ClaimToken& token,
                        std::chrono::milliseconds ttl, const StoreContext& context) {
  return guarded(
      1, [&] { return std::vector<StoreResult>{store_->renew(key, token, ttl, context)}; })[0];
}

StoreResult Tier::release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome outcome,
                          const StoreContext& context) {
  return guarded(1, [&] {
    return std::vector<StoreResult>{store_->release(key, token, outcome, context)};
  })[0];
}

bool Tier::is_paused(Direction direction) const {
  return (direction == Direction::reads ? read_breaker_ : write_breaker_).is_open();
}

Breaker::Admission Tier::admit(Direction direction) {
  return breaker(direction).admit(Clock::now());
}

void Tier::report(Direction direction, bool fault) {
  const char* const what = direction == Direction::reads ? "reads from" : "writes to";
  if (!fault) {
    if (breaker(direction).succeeded()) {
      logger()->info("store {} answers again: {} it resume", name_, what);
    }
    return;
  }
  if (breaker(direction).failed(Clock::now())) {
    throttle_.log(spdlog::level::warn,
                  "store {} keeps failing: {} it pause, and are tried again every few seconds; "
                  "vitrove doctor with its URL says what is wrong",
                  name_, what);
  }
}

void Tier::skipped_too_large(std::size_t values, std::uint64_t limit) {
  if (values == 0) return;
  puts_.record_faults(values, std::string(to_string(StoreStatus::too_large)));
  say_too_large(limit);
}

void Tier::say_too_large(std::uint64_t limit) {
  if (said_too_large_.exchange(true)) return;
  logger()->warn("store {}: values beyond the limit of {} bytes are not put; said once", name_,
                 limit);
}

void Tier::complain(std::string_view what, const StoreResult& result) {
  throttle_.log(spdlog::level::warn, "store {} {}: {}", name_, what, reason_of(result));
}

bool Tier::is_fault(std::span<const StoreResult> results) {
  return std::ranges::all_of(results, [](const StoreResult& result) {
    return result.is_fault() && !is_of_its_key(result);
  });
}

bool Tier::is_of_its_key(const StoreResult& result) {
  return result.is_fault() && result.error_number == EMEDIUMTYPE;
}

void Tier::mark_bad(const EmbeddingKey& key, Bad how) {
  const auto now = Clock::now();
  const auto until = how == Bad::not_believed ? now + avoid_time : Clock::time_point::min();
  std::lock_guard lock(bad_mutex_);
  if (bad_.size() >= max_bad_keys && !bad_.contains(key)) {
    // Once in that while: it looks at all marks, and lookups wait for it.
    if (now >= all_avoided_until_) {
      std::erase_if(bad_, [now](const auto& mark) { return mark.second <= now; });
    }
    if (bad_.size() >= max_bad_keys) {
      all_avoided_until_ = now + avoid_time;
      return;
    }
  }
  const auto mark = bad_.try_emplace(key, until).first;
  mark->second = std::max(mark->second, until);
}

void Tier::mark_renewed(const EmbeddingKey& key) {
  std::lock_guard lock(bad_mutex_);
  bad_.erase(key);
}

void Tier::mark_readable(const EmbeddingKey& key) {
  const auto now = Clock::now();
  std::lock_guard lock(bad_mutex_);
  const auto mark = bad_.find(key);
  if (mark != bad_.end() && mark->second <= now) bad_.erase(mark);
}

bool Tier::is_bad(const EmbeddingKey& key) const {
  std::lock_guard lock(bad_mutex_);
  return bad_.contains(key) || Clock::now() < all_avoided_until_;
}

bool Tier::is_avoided(const EmbeddingKey& key) const {
  const auto now = Clock::now();
  std::lock_guard lock(bad_mutex_);
  if (now < all_avoided_until_) return true;
  const auto found = bad_.find(key);
  return found != bad_.end() && now < found->second;
}

StoreStats Tier::snapshot() const {
  StoreStats stats;
  stats.name = name_;
  stats.get = gets_.snapshot();
  stats.put = puts_.snapshot();
  stats.exist = exists_.snapshot();
  stats.remove = removes_.snapshot();
  stats.breaker_open = read_breaker_.is_open();
  stats.put_breaker_open = write_breaker_.is_open();
  return stats;
}

}  // namespace vitrove
