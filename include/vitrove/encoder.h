// Encoder: preprocessed tensors in, rows out, in batches (design section 7).
//
// An encoder brings its preprocessor along, since a model's rows mean nothing without the pixels it
// was trained on. It names its fingerprint (weights and every setting that can change its output),
// dim, dtype, what a row is, and the token count of an item where that is known beforehand.
//
// Threads: `encode` is called by one thread at a time (the EncodeBatcher's); everything else is
// const and may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/digest.h"
#include "vitrove/preprocess.h"
#include "vitrove/types.h"

namespace vitrove {

struct EncoderInfo {
  std::string name;
  std::string revision;
  Digest256 fingerprint;
  std::uint32_t dim = 0;
  DType dtype = DType::float32;
  std::string row_meaning;  // "tokens", "packed", "chw"
  std::vector<Modality> modalities;
};

// The rows of one item, in memory that lives as long as this value.
struct EncoderOutput {
  std::vector<std::byte> bytes;
  std::uint32_t rows = 0;
  std::optional<Grid> grid;  // when the output's grid differs from, or completes, the item's
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  virtual const EncoderInfo& info() const = 0;
  virtual const Preprocessor& preprocessor() const = 0;

  // Rows that the item will have, when known without running the model.
  virtual std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const = 0;

  // Items that can share a batch have equal classes (equal shapes, for a graph with fixed sizes).
  virtual std::string batch_class(const PreprocessedItem& item) const = 0;

  // One output an item, in order; all items are of one batch class. Throws Error{internal} when the
  // model fails.
  virtual std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) = 0;
};

struct EncoderOptions {
  std::string execution_provider = "cpu";
  int threads = 0;                // 0: as many as there are cores
  std::string mm_process_config;  // JSON: the server's defaults for mm_processor_kwargs
};

// "DIR", "onnx:DIR" or "stub:dim=64,tokens=16,seed=1,dtype=float32,delay_ms=500,fail=nan". Throws
// Error{invalid_argument} with one clear line.
std::unique_ptr<Encoder> make_encoder(std::string_view spec, const EncoderOptions& options = {});

}  // namespace vitrove
