// EncodeBatcher: dynamic batching across requests. One thread runs the encoder; items that arrive
// while it is busy, or within `max_wait` of the first, and are of one batch class run together.
// Batching never changes which rows an item gets, and a failing batch of several is repeated item
// by item, so that one bad item never fails its neighbours. An item that failed alone is not
// repeated.
//
// Items with a grid are as large as they like, so their patches are bounded too: what a batch has
// no room for waits for the next one, and an item beyond the bound runs alone.
//
// Outputs are checked before they are handed on: no rows, a size other than rows * dim, or another
// number of rows than token_count() promised is Error{internal} for that item (field case B37).
//
// The queue is bounded: submit() throws Error{queue_full} beyond it. Cancelled items are dropped
// before they run and make room for others. The destructor finishes what runs and answers
// Error{unavailable} to the rest.
//
// Every method may be called from any thread; the encoder's encode() is called from one only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>

#include "vitrove/encoder.h"

namespace vitrove {

struct BatcherOptions {
  std::uint32_t max_batch_size = 8;
  std::uint64_t max_batch_patches = 16'384;  // of all items of a batch that have a grid
  std::chrono::microseconds max_wait{2'000};
  std::uint32_t max_queue = 1024;  // items waiting
};

struct EncodeResult {
  EncoderOutput output;
  std::chrono::microseconds cost{0};  // the item's share of its batch's time, by its bytes
};

struct BatcherStats {
  // Counters.
  std::uint64_t items = 0;     // encoded
  std::uint64_t batches = 0;   // runs of the encoder, also those that failed
  std::uint64_t failures = 0;  // items answered with an error of the encoder's
  std::uint64_t busy_us = 0;   // encoder time
  // Gauges.
  std::uint64_t queued = 0;
  // How long the running batch has run; 0 when the encoder is idle. For readiness: an encoder that
  // hangs shows here.
  std::uint64_t running_since_us = 0;
};

class EncodeBatcher {
 public:
  // Throws Error{invalid_argument} without an encoder or with a limit of 0.
  EncodeBatcher(std::shared_ptr<Encoder> encoder, BatcherOptions options);
  ~EncodeBatcher();
  EncodeBatcher(const EncodeBatcher&) = delete;
  EncodeBatcher& operator=(const EncodeBatcher&) = delete;

  // The future holds an Error when the item failed. Throws Error{queue_full}, Error{unavailable}
  // while shutting down, Error{invalid_argument} when the encoder takes no item of this shape.
  //
  // `on_ready` is called once the future has something, for callers that wait for other things
  // beside it. It may be called from any thread and under the batcher's lock: it must not throw,
  // block or call the batcher. Not called when submit() throws.
  std::future<EncodeResult> submit(std::shared_ptr<const PreprocessedItem> item,
                                   std::stop_token cancel = {},
                                   std::function<void()> on_ready = {});

  const std::shared_ptr<Encoder>& encoder() const;
  BatcherStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
