// Counters of lookups. A hit adds to the stripe of its thread, so that hits on two cores share no
// cache line; a reader sums the stripes. Sums are exact at rest and only grow.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>

#include "vitrove/embedding_cache_controller.h"

namespace vitrove {

enum class LookupResult : std::uint8_t { local, joined, store, miss };

class LookupCounters {
 public:
  void count(Modality modality, LookupResult result) noexcept {
    counter(stripe(), modality, result).fetch_add(1, std::memory_order_relaxed);
  }
  // A lookup that spared its caller an encode.
  void count_hit(Modality modality, LookupResult result, std::uint64_t cost_us) noexcept {
    Stripe& mine = stripe();
    counter(mine, modality, result).fetch_add(1, std::memory_order_relaxed);
    mine.saved_us.fetch_add(cost_us, std::memory_order_relaxed);
  }

  LookupStats sum(std::size_t modality) const noexcept {
    const auto of = [&](LookupResult result) {
      std::uint64_t total = 0;
      for (const Stripe& stripe : stripes_) {
        total += stripe.by_modality[modality][static_cast<std::size_t>(result)].load(
            std::memory_order_relaxed);
      }
      return total;
    };
    return {of(LookupResult::local), of(LookupResult::joined), of(LookupResult::store),
            of(LookupResult::miss)};
  }
  std::uint64_t saved_us() const noexcept {
    std::uint64_t total = 0;
    for (const Stripe& stripe : stripes_) total += stripe.saved_us.load(std::memory_order_relaxed);
    return total;
  }

 private:
  // Modality values run from 1 to 3; row 0 takes what a careless caller left at 0.
  struct alignas(64) Stripe {
    std::array<std::array<std::atomic<std::uint64_t>, 4>, 4> by_modality{};
    std::atomic<std::uint64_t> saved_us{0};
  };
  static constexpr unsigned stripe_bits = 5;

  static std::atomic<std::uint64_t>& counter(Stripe& stripe, Modality modality,
                                             LookupResult result) noexcept {
    return stripe
        .by_modality[static_cast<std::size_t>(modality) & 3][static_cast<std::size_t>(result)];
  }

  // Thread ids are addresses of thread blocks: the multiplication spreads them.
  Stripe& stripe() noexcept {
    const auto id = static_cast<std::uint64_t>(pthread_self());
    return stripes_[(id * 0x9E3779B97F4A7C15U) >> (64 - stripe_bits)];
  }

  std::array<Stripe, std::size_t{1} << stripe_bits> stripes_;
};

}  // namespace vitrove
