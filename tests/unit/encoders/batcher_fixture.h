// An encoder that stands still on command and remembers what ran together.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "contract/gate.h"
#include "support.h"
#include "vitrove/encode_batcher.h"

namespace vitrove::test {

using vitrove::testing::Gate;

class NoPreprocessor final : public Preprocessor {
 public:
  std::string_view family() const override { return "none"; }
  ResolvedParams resolve(Modality, std::string_view) const override { return {}; }
  std::uint64_t bytes_beside(std::uint32_t, std::uint32_t, const ResolvedParams&) const override {
    return 0;
  }
  PreprocessedItem run(const RgbImage&, const ResolvedParams&) const override { return {}; }
  std::vector<PipelineVersion> versions() const override { return {}; }
};

// Rows of one number an item, one or as many as its grid has rows: the item's own. Passes a gate on
// every run and remembers what ran together.
class GatedEncoder final : public Encoder {
 public:
  using Behaviour = std::function<void(std::vector<EncoderOutput>&)>;

  GatedEncoder() { info_.dim = 1; }

  const EncoderInfo& info() const override { return info_; }
  const Preprocessor& preprocessor() const override { return preprocessor_; }
  std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override {
    return item.grid ? item.grid->h : 1;
  }

  std::string batch_class(const PreprocessedItem& item) const override {
    if (value(item) < 0) throw Error(ErrorCode::invalid_argument, "no negative items");
    return std::to_string(item.primary().shape.size());
  }

  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override {
    if (before) before(batch);
    std::vector<int> values;
    for (const PreprocessedItem* item : batch) values.push_back(value(*item));
    {
      const std::lock_guard lock(mutex_);
      runs_.push_back(values);
    }
    gate.pass();
    std::vector<EncoderOutput> outputs;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (values[i] == poison) throw std::runtime_error("poison");
      outputs.push_back(make_output(values[i], *token_count(*batch[i])));
    }
    if (behaviour) behaviour(outputs);
    return outputs;
  }

  std::vector<std::vector<int>> runs() const {
    const std::lock_guard lock(mutex_);
    return runs_;
  }

  static int value(const PreprocessedItem& item) {
    return static_cast<int>(item.primary().floats().front());
  }

  static EncoderOutput make_output(int number, std::uint32_t rows) {
    EncoderOutput output;
    output.rows = rows;
    output.bytes.resize(std::size_t{4} * rows);
    const std::vector<float> numbers(rows, static_cast<float>(number));
    float32_to_rows(numbers, DType::float32, output.bytes);
    return output;
  }

  Gate gate;
  int poison = -1;
  std::function<void(std::span<const PreprocessedItem* const>)> before;
  Behaviour behaviour;

 private:
  EncoderInfo info_;
  NoPreprocessor preprocessor_;
  mutable std::mutex mutex_;
  std::vector<std::vector<int>> runs_;
};

// `rank` is the batch class.
inline std::shared_ptr<const PreprocessedItem> item(int number, std::size_t rank = 1) {
  return std::make_shared<PreprocessedItem>(
      float_item(std::vector<std::int64_t>(rank, 1), {static_cast<float>(number)}));
}

inline std::shared_ptr<const PreprocessedItem> item_of(int number, Grid grid) {
  auto made = float_item({1}, {static_cast<float>(number)});
  made.grid = grid;
  return std::make_shared<PreprocessedItem>(std::move(made));
}

inline int number_of(const EncodeResult& result) {
  return static_cast<int>(floats_of(result.output).front());
}

inline ErrorCode error_of(std::future<EncodeResult>& future) {
  return failure_of([&] { future.get(); }).code;
}

// Long enough that a batch is only ever closed by being full or by the encoder becoming free.
constexpr auto for_ever = std::chrono::hours(1);
constexpr auto no_wait = std::chrono::microseconds(0);

class EncodeBatcherTest : public ::testing::Test {
 protected:
  EncodeBatcher& start(BatcherOptions options) {
    batcher_.emplace(encoder_, options);
    return *batcher_;
  }

  // Item 0 stands at the closed gate, so that what is submitted next must queue.
  std::future<EncodeResult> occupy() {
    encoder_->gate.close();
    auto running = batcher_->submit(item(0));
    EXPECT_TRUE(encoder_->gate.wait_for_waiting(1));
    return running;
  }

  std::shared_ptr<GatedEncoder> encoder_ = std::make_shared<GatedEncoder>();
  std::optional<EncodeBatcher> batcher_;
};

}  // namespace vitrove::test
