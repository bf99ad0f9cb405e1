// Counters of lookups, by group (lookup_groups.h). A hit adds to the stripe of its thread, so that
// hits on two cores share no cache line; a reader sums the stripes. Sums are exact at rest and only
// grow.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cache/lookup_groups.h"
#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

enum class LookupResult : std::uint8_t { local, joined, store, miss };

class LookupCounters {
 public:
  struct Hits {
    std::uint64_t count = 0;
    std::uint64_t saved_us = 0;
  };

  void count(std::uint8_t group, LookupResult result) noexcept {
    counter(stripe()[group], result).fetch_add(1, std::memory_order_relaxed);
  }
  // A lookup that spared its caller an encode.
  void count_hit(std::uint8_t group, LookupResult result, std::uint64_t cost_us) noexcept {
    count_hits(group, result, {1, cost_us});
  }

  void count_hits(std::uint8_t group, LookupResult result, const Hits& hits) noexcept {
    Counts& mine = stripe()[group];
    counter(mine, result).fetch_add(hits.count, std::memory_order_relaxed);
    mine.saved_us.fetch_add(hits.saved_us, std::memory_order_relaxed);
  }

  LookupStats sum(std::size_t group) const noexcept {
    const auto of = [&](LookupResult result) {
      std::uint64_t total = 0;
      for (const Stripe& stripe : stripes_) {
        total += stripe.groups[group].by_result[static_cast<std::size_t>(result)].load(
            std::memory_order_relaxed);
      }
      return total;
    };
    return {of(LookupResult::local), of(LookupResult::joined), of(LookupResult::store),
            of(LookupResult::miss)};
  }
  std::uint64_t saved_us(std::size_t group) const noexcept {
    std::uint64_t total = 0;
    for (const Stripe& stripe : stripes_) {
      total += stripe.groups[group].saved_us.load(std::memory_order_relaxed);
    }
    return total;
  }

 private:
  // All that a hit raises lies in one cache line.
  struct alignas(64) Counts {
    std::array<std::atomic<std::uint64_t>, 4> by_result{};
    std::atomic<std::uint64_t> saved_us{0};
  };
  struct Stripe {
    std::array<Counts, LookupGroups::most> groups{};
  };
  static constexpr unsigned stripe_bits = 5;

  static std::atomic<std::uint64_t>& counter(Counts& counts, LookupResult result) noexcept {
    return counts.by_result[static_cast<std::size_t>(result)];
  }

  // A thread is known by the address of its block: the multiplication spreads them.
  std::array<Counts, LookupGroups::most>& stripe() noexcept {
    const auto id = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
    return stripes_[(id * 0x9E3779B97F4A7C15U) >> (64 - stripe_bits)].groups;
  }

  std::array<Stripe, std::size_t{1} << stripe_bits> stripes_;
};

// Hits of one request, counted when it ends, or when the group changes (mostly once).
class HitTally {
 public:
  HitTally(LookupCounters& counters, LookupResult result) : counters_(counters), result_(result) {}
  ~HitTally() { flush(); }
  HitTally(const HitTally&) = delete;
  HitTally& operator=(const HitTally&) = delete;

  void add(std::uint8_t group, std::uint64_t cost_us) noexcept {
    if (group != group_) flush();
    group_ = group;
    ++hits_.count;
    hits_.saved_us += cost_us;
  }

 private:
  void flush() noexcept {
    if (hits_.count > 0) counters_.count_hits(group_, result_, std::exchange(hits_, {}));
  }

  LookupCounters& counters_;
  const LookupResult result_;
  std::uint8_t group_ = 0;
  LookupCounters::Hits hits_;
};

}  // namespace vitrove
