// StubEncoder: rows without a model (design section 7), for tests of everything that is not the
// encoder. It takes decoded pictures like a real one.
//
// A row is a function of the picture's pixels and size and of the options that are part of the
// fingerprint, computed in integers and exact float32 steps: the same on every machine, whatever
// the batch. The grid it reports is the picture's patches of 14 x 14 pixels, whether or not the
// number of rows follows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "encoders/stub/stub_options.h"
#include "vitrove/encoder.h"

namespace vitrove {

class StubEncoder final : public Encoder {
 public:
  explicit StubEncoder(const StubOptions& options);

  const EncoderInfo& info() const override { return info_; }
  const Preprocessor& preprocessor() const override { return *preprocessor_; }
  std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override;
  // All items share one class: the stub does not care about sizes.
  std::string batch_class(const PreprocessedItem& item) const override;
  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override;

 private:
  EncoderOutput encode_item(const PreprocessedItem& item);

  StubOptions options_;
  std::unique_ptr<Preprocessor> preprocessor_;
  EncoderInfo info_;
  std::uint64_t failures_left_ = 0;
};

}  // namespace vitrove
