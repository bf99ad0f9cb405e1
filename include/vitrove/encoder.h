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

  // Rows that the item will have, when known without running the model. A promise: an output of
  // another length is refused (field case B37).
  virtual std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const = 0;

  // Items that can share a batch have equal classes (equal shapes, for a graph with fixed sizes).
  // Throws Error{invalid_argument} when the model does not take an item of this shape.
  virtual std::string batch_class(const PreprocessedItem& item) const = 0;

  // One output an item, in order; all items are of one batch class. Throws Error{internal} when the
  // model fails.
  virtual std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) = 0;
};

struct EncoderOptions {
  // "cpu", "cuda", "tensorrt", "openvino", ...: what the ONNX Runtime of this host offers.
  std::string execution_provider = "cpu";
  int threads = 0;                // 0: as many as there are cores
  std::string mm_process_config;  // JSON: the server's defaults for mm_processor_kwargs
  PreprocessLimits preprocess_limits;
  // The ONNX Runtime library. Empty: the one that the environment variable
  // VITROVE_ONNXRUNTIME_LIBRARY names, else build/deps or lib beside the executable, else the
  // system's. Any version from 1.16.
  // It is forbidden to report its use to its maker: ORT_DISABLE_TELEMETRY is set to 1 with the
  // first encoder, unless it is set. A host with threads that call setenv() or getenv() sets it
  // before.
  std::string onnxruntime_library;
};

// "DIR" or "onnx:DIR": a model directory (design section 7). "stub" or "stub:OPTIONS": an encoder
// for tests of everything else, whose rows are a deterministic function of the decoded content and
// the options; the same on every machine. Options, comma-separated, with their defaults:
//   dim=64, tokens=16, seed=1, dtype=float32   part of the fingerprint: two seeds are two models
//   tokens=MIN-MAX   frames * ceil(width / 14) * ceil(height / 14) rows, of a sound one for every
//                    40 ms, held between MIN and MAX
//   delay_ms=0       time an item takes; a batch of n takes n times as long, as on real hardware
//   fail=error       every item fails
//   fail=nan         every output holds one NaN
//   fail=short       every output lacks its last row
//   fail=first       the first item that this encoder is given fails, all later ones succeed
//   fail_count=N     with fail=error, nan or short: only the first N items
//
// Throws Error{invalid_argument} with one clear line, Error{unavailable} when ONNX Runtime is
// needed and missing. what() names no path; detail() does.
std::unique_ptr<Encoder> make_encoder(std::string_view spec, const EncoderOptions& options = {});

}  // namespace vitrove
