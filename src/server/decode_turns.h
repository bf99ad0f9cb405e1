// DecodeTurns: who may decode now. Decoding is bounded by cores and not by requests; and pictures
// that take seconds never have all the turns, so that small ones do not wait behind a row of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>

#include "server/slot_gate.h"

namespace vitrove {

class DecodeTurns {
 public:
  // Larger than what cameras make: decoding more takes a second or so.
  static constexpr std::uint64_t large_picture = 16'000'000;  // pixels

  // With one slot alone, all share it.
  explicit DecodeTurns(std::size_t slots) : all_(slots), large_(slots > 1 ? slots / 2 : 1) {}

  class Turn {
   public:
    Turn(std::optional<SlotGate::Slot> large, SlotGate::Slot any)
        : large_(std::move(large)), any_(std::move(any)) {}

   private:
    std::optional<SlotGate::Slot> large_;
    SlotGate::Slot any_;
  };

  // Throws Error{deadline_exceeded} or Error{cancelled}.
  Turn enter(std::uint64_t pixels, std::chrono::steady_clock::time_point deadline,
             const std::stop_token& cancel) {
    std::optional<SlotGate::Slot> large;
    if (pixels > large_picture) large.emplace(large_.enter(deadline, cancel));
    return {std::move(large), all_.enter(deadline, cancel)};
  }

 private:
  SlotGate all_;
  SlotGate large_;
};

}  // namespace vitrove
