// MeteredEncoder: an encoder that counts what its inner one does. The totals outlive a reload, so
// counters never go back; probes run like any item but are not counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "vitrove/encoder.h"

namespace vitrove {

struct EncoderMeter {
  std::atomic<std::uint64_t> items{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> busy_us{0};
};

class MeteredEncoder final : public Encoder {
 public:
  MeteredEncoder(std::shared_ptr<Encoder> inner, std::shared_ptr<EncoderMeter> meter);

  const EncoderInfo& info() const override { return inner_->info(); }
  const Preprocessor& preprocessor() const override { return inner_->preprocessor(); }
  std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override {
    return inner_->token_count(item);
  }
  std::string batch_class(const PreprocessedItem& item) const override {
    return inner_->batch_class(item);
  }
  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override;

  // This item is never counted, whenever it gets its turn.
  void leave_out(const std::shared_ptr<const PreprocessedItem>& item);

 private:
  std::size_t counted_items(std::span<const PreprocessedItem* const> batch) const;

  std::shared_ptr<Encoder> inner_;
  std::shared_ptr<EncoderMeter> meter_;
  mutable std::mutex mutex_;
  // By who owns them: the address of one that is gone may soon be another's.
  std::vector<std::weak_ptr<const PreprocessedItem>> probes_;
};

}  // namespace vitrove
