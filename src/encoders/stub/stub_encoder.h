// StubEncoder: rows without a model (design section 7), for tests of everything that is not the
// encoder. It takes decoded pictures, clips and sounds like a real one.
//
// A row is a function of the content and its size and of the options that are part of the
// fingerprint, computed in integers and exact float32 steps: the same on every machine, whatever
// the batch. The grid it reports is that of patches of 14 x 14 pixels in each frame, whether or not
// the number of rows follows it; a sound has none, and a row for every 640 samples (40 ms).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encoders/stub/stub_options.h"
#include "vitrove/encoder.h"

namespace vitrove {

class StubEncoder final : public Encoder {
 public:
  // `video_defaults`: of make_raw_preprocessor().
  explicit StubEncoder(const StubOptions& options, std::string_view video_defaults = {});

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
