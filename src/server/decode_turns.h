// DecodeTurns: who may decode now. Decoding is bounded by cores and not by requests; and pictures
// that take seconds never have all the turns, so that small ones do not wait behind a row of them.
//
// First come, first served. Who has to ask twice (of a clip it shows only after a first look at all
// of it that it is large work) keeps its place: it comes before all who came after it.
#pragma once

#include <atomic>
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

  // A place in the line, good for any number of turns.
  SlotGate::Rank draw() { return next_++; }

  class Turn {
   public:
    Turn(std::optional<SlotGate::Slot> large, SlotGate::Slot any)
        : large_(std::move(large)), any_(std::move(any)) {}

    bool is_good_for(std::uint64_t pixels) const {
      return large_.has_value() || pixels <= large_picture;
    }

   private:
    std::optional<SlotGate::Slot> large_;
    SlotGate::Slot any_;
  };

  // Whoever asks holds no turn. Throws Error{deadline_exceeded} or Error{cancelled}.
  Turn enter(SlotGate::Rank place, std::uint64_t pixels,
             std::chrono::steady_clock::time_point deadline, const std::stop_token& cancel) {
    std::optional<SlotGate::Slot> large;
    if (pixels > large_picture) large.emplace(large_.enter(place, deadline, cancel));
    return {std::move(large), all_.enter(place, deadline, cancel)};
  }

  // Of all kinds of work; one that waits for a turn of the few is counted once.
  std::size_t waiting() const { return all_.waiting() + large_.waiting(); }

 private:
  std::atomic<SlotGate::Rank> next_{0};
  SlotGate all_;
  SlotGate large_;
};

}  // namespace vitrove
