#include "server/metered_encoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vitrove {

MeteredEncoder::MeteredEncoder(std::shared_ptr<Encoder> inner, std::shared_ptr<EncoderMeter> meter)
    : inner_(std::move(inner)), meter_(std::move(meter)) {}

std::vector<EncoderOutput> MeteredEncoder::encode(std::span<const PreprocessedItem* const> batch) {
  const std::size_t counted = counted_items(batch);
  const auto begin = std::chrono::steady_clock::now();
  const auto book = [&](std::atomic<std::uint64_t>& outcome, std::uint64_t count) {
    if (counted == 0) return;
    const auto spent = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin);
    const auto us = static_cast<std::uint64_t>(spent.count());
    meter_->busy_us += us * counted / batch.size();
    outcome += count;
  };
  try {
    auto outputs = inner_->encode(batch);
    book(meter_->items, counted);
    if (counted != 0) ++meter_->batches;
    return outputs;
  } catch (...) {
    book(meter_->failures, 1);
    throw;
  }
}

void MeteredEncoder::leave_out(const PreprocessedItem* item) {
  std::lock_guard lock(mutex_);
  probes_.insert(item);
}

void MeteredEncoder::count_again(const PreprocessedItem* item) {
  std::lock_guard lock(mutex_);
  probes_.erase(item);
}

std::size_t MeteredEncoder::counted_items(std::span<const PreprocessedItem* const> batch) const {
  std::lock_guard lock(mutex_);
  if (probes_.empty()) return batch.size();
  return static_cast<std::size_t>(
      std::ranges::count_if(batch, [this](const auto* item) { return !probes_.contains(item); }));
}

}  // namespace vitrove
