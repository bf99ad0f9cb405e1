// LookupGroups: gives each pair of modality and model a small number, so that an entry can say in
// one byte whose counters a hit belongs to. Numbers are given for ever; the first rows, one a
// modality, count what comes when all are given away.
//
// Reading takes no lock: a group is written before the count that covers it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "vitrove/digest.h"
#include "vitrove/types.h"

namespace vitrove {

class LookupGroups {
 public:
  static constexpr std::size_t most = 16;
  static constexpr std::size_t first_named = 4;  // modality values run from 0 (careless) to 3

  struct Group {
    Modality modality = Modality::image;
    std::optional<Digest256> model;
  };

  LookupGroups() {
    for (std::size_t number = 0; number < first_named; ++number) {
      groups_[number].modality = static_cast<Modality>(number);
    }
  }

  std::uint8_t number_of(Modality modality, const Digest256& model) {
    if (const auto known = find(modality, model)) return *known;
    std::lock_guard lock(mutex_);
    if (const auto known = find(modality, model)) return *known;
    const std::size_t number = count_.load(std::memory_order_relaxed);
    if (number == most) return static_cast<std::uint8_t>(static_cast<std::size_t>(modality) & 3);
    groups_[number] = {modality, model};
    count_.store(number + 1, std::memory_order_release);
    return static_cast<std::uint8_t>(number);
  }

  std::size_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  const Group& operator[](std::size_t number) const noexcept { return groups_[number]; }

 private:
  std::optional<std::uint8_t> find(Modality modality, const Digest256& model) const {
    for (std::size_t number = first_named; number < count(); ++number) {
      const Group& group = groups_[number];
      if (group.modality == modality && group.model == model) {
        return static_cast<std::uint8_t>(number);
      }
    }
    return std::nullopt;
  }

  std::mutex mutex_;
  std::atomic<std::size_t> count_{first_named};
  std::array<Group, most> groups_;
};

}  // namespace vitrove
