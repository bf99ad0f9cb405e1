// EncodeBatcher: dynamic batching across requests. One thread runs the encoder; items that arrive
// while it is busy, or within `max_wait` of the first, and are of one batch class run together.
// Batching never changes which rows an item gets, and a failing batch of several is repeated item
// by item, so that one bad item never fails its neighbours.
//
// The queue is bounded: submit() throws Error{queue_full} beyond it. Cancelled items are dropped
// before they run. The destructor finishes what runs and answers Error{unavailable} to the rest.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <stop_token>

#include "vitrove/encoder.h"

namespace vitrove {

struct BatcherOptions {
  std::uint32_t max_batch_size = 8;
  std::chrono::microseconds max_wait{2'000};
  std::uint32_t max_queue = 1024;  // items waiting
};

struct EncodeResult {
  EncoderOutput output;
  std::chrono::microseconds cost{0};  // the item's share of its batch's time
};

struct BatcherStats {
  std::uint64_t items = 0;  // encoded, counters
  std::uint64_t batches = 0;
  std::uint64_t failures = 0;
  std::uint64_t busy_us = 0;           // encoder time
  std::uint64_t queued = 0;            // gauge
  std::uint64_t running_since_us = 0;  // gauge: how long the running batch has run, 0 when idle
};

class EncodeBatcher {
 public:
  EncodeBatcher(std::shared_ptr<Encoder> encoder, BatcherOptions options);
  ~EncodeBatcher();

  // The future holds an Error when the item failed.
  std::future<EncodeResult> submit(std::shared_ptr<const PreprocessedItem> item,
                                   std::stop_token cancel = {});

  const std::shared_ptr<Encoder>& encoder() const;
  BatcherStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
