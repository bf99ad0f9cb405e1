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

void MeteredEncoder::leave_out(const std::shared_ptr<const PreprocessedItem>& item) {
  std::lock_guard lock(mutex_);
  std::erase_if(probes_, [](const auto& probe) { return probe.expired(); });
  probes_.push_back(item);
}

std::size_t MeteredEncoder::counted_items(std::span<const PreprocessedItem* const> batch) const {
  std::lock_guard lock(mutex_);
  if (probes_.empty()) return batch.size();
  const auto is_counted = [this](const PreprocessedItem* item) {
    return std::ranges::none_of(probes_,
                                [item](const auto& probe) { return probe.lock().get() == item; });
  };
  return static_cast<std::size_t>(std::ranges::count_if(batch, is_counted));
}

}  // namespace vitrove
