#include "encoders/stub/stub_encoder.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "base/little_endian.h"
#include "vitrove/error.h"
#include "vitrove/half.h"
#include "vitrove/model_fingerprint.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace {

constexpr std::uint32_t patch_side = 14;

// Raised when the rows of the same options change; part of the fingerprint.
constexpr auto rows_version = "1";

Digest256 fingerprint(const StubOptions& options) {
  FingerprintParts parts;
  parts.settings = {
      {"kind", "stub"},
      {"rows_version", rows_version},
      {"dim", std::to_string(options.dim)},
      {"min_tokens", std::to_string(options.min_tokens)},
      {"max_tokens", std::to_string(options.max_tokens)},
      {"seed", std::to_string(options.seed)},
      {"dtype", std::string(to_string(options.dtype))},
  };
  return model_fingerprint(parts);
}

constexpr std::uint32_t samples_a_row = 640;

std::uint32_t parts_of(std::int64_t whole, std::uint32_t part) {
  return static_cast<std::uint32_t>((whole + part - 1) / part);
}

// Nothing for a sound: samples are [samples], a picture is [height, width, 3], a clip has its
// frames before that.
std::optional<Grid> patch_grid(const PreprocessedItem& item) {
  const auto& shape = item.primary().shape;
  const bool is_good = std::ranges::all_of(shape, [](std::int64_t side) { return side > 0; });
  if (!is_good || shape.empty() || shape.size() == 2 || shape.size() > 4) {
    throw Error(ErrorCode::internal,
                "the stub encoder takes pixels as [height, width, 3], frames of them, or samples");
  }
  if (shape.size() == 1) return std::nullopt;
  const std::size_t sides = shape.size() - 3;
  const auto frames = sides == 0 ? 1U : static_cast<std::uint32_t>(shape[0]);
  return Grid{frames, parts_of(shape[sides], patch_side), parts_of(shape[sides + 1], patch_side)};
}

// The finaliser of splitmix64: every bit of the input moves every bit of the output.
constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

// A stream of numbers that can be entered anywhere: number k is a function of k and the key.
class RowGenerator {
 public:
  RowGenerator(const PreprocessedItem& item, const StubOptions& options) {
    PayloadChecksum checksum;
    for (const Tensor& tensor : item.tensors) {
      checksum.update(std::as_bytes(std::span(tensor.shape)));
      checksum.update(tensor.bytes());
    }
    const auto content = checksum.finish();
    start_ = load_le<std::uint64_t>(content.data()) ^ mix(options.seed) ^ mix(mix(options.dim) + 1);
    mask_ = load_le<std::uint64_t>(content.data() + 8);
  }

  // Numbers 2 * first_pair and on, in [-1, 1). `out` has an even size.
  void fill(std::uint64_t first_pair, std::span<float> out) const {
    constexpr std::uint64_t step = 0x9e3779b97f4a7c15;
    for (std::size_t i = 0; i < out.size() / 2; ++i) {
      const std::uint64_t word = mix(start_ + (first_pair + i) * step) ^ mask_;
      out[2 * i] = number(static_cast<std::uint32_t>(word));
      out[2 * i + 1] = number(static_cast<std::uint32_t>(word >> 32));
    }
  }

 private:
  // 24 bits fit a float32 exactly, and so does every step.
  static float number(std::uint32_t bits) {
    return static_cast<float>(static_cast<std::int32_t>(bits >> 8)) * 0x1p-23F - 1.0F;
  }

  std::uint64_t start_ = 0;
  std::uint64_t mask_ = 0;
};

std::vector<std::byte> make_rows(const RowGenerator& generator, std::uint64_t elements,
                                 DType dtype) {
  std::vector<std::byte> bytes(elements * element_size(dtype));
  std::array<float, 4096> chunk{};
  for (std::uint64_t done = 0; done < elements; done += chunk.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(chunk.size(), elements - done);
    generator.fill(done / 2, std::span(chunk).first(count + count % 2));
    float32_to_rows(
        std::span(chunk).first(count), dtype,
        std::span(bytes).subspan(done * element_size(dtype), count * element_size(dtype)));
  }
  return bytes;
}

void plant_nan(std::vector<std::byte>& bytes, DType dtype) {
  const float nan[] = {std::numeric_limits<float>::quiet_NaN()};
  const std::size_t size = element_size(dtype);
  const std::size_t middle = bytes.size() / size / 2;
  float32_to_rows(nan, dtype, std::span(bytes).subspan(middle * size, size));
}

}  // namespace

StubEncoder::StubEncoder(const StubOptions& options, std::string_view video_defaults)
    : options_(options),
      preprocessor_(make_raw_preprocessor(video_defaults)),
      failures_left_(options.failure == StubFailure::none ? 0 : options.fail_count) {
  info_.name = "stub";
  info_.fingerprint = fingerprint(options);
  info_.dim = options.dim;
  info_.dtype = options.dtype;
  info_.row_meaning = "tokens";
  info_.modalities = {Modality::image, Modality::video, Modality::audio};
}

std::optional<std::uint32_t> StubEncoder::token_count(const PreprocessedItem& item) const {
  const auto grid = patch_grid(item);
  const std::uint64_t patches = grid ? std::uint64_t{grid->t} * grid->h * grid->w
                                     : parts_of(item.primary().shape[0], samples_a_row);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(patches, options_.min_tokens, options_.max_tokens));
}

std::string StubEncoder::batch_class(const PreprocessedItem&) const { return {}; }

EncoderOutput StubEncoder::encode_item(const PreprocessedItem& item) {
  std::this_thread::sleep_for(options_.delay);
  EncoderOutput output;
  output.grid = patch_grid(item);
  output.rows = *token_count(item);
  const bool fails = failures_left_ > 0;
  if (fails) --failures_left_;
  if (fails && options_.failure == StubFailure::error) {
    throw Error(ErrorCode::internal, "the stub encoder fails, as it was told to");
  }
  if (fails && options_.failure == StubFailure::short_rows) --output.rows;
  output.bytes = make_rows(RowGenerator(item, options_), std::uint64_t{output.rows} * options_.dim,
                           options_.dtype);
  if (fails && options_.failure == StubFailure::nan) plant_nan(output.bytes, options_.dtype);
  return output;
}

std::vector<EncoderOutput> StubEncoder::encode(std::span<const PreprocessedItem* const> batch) {
  // A batch that fails as a whole says nothing about its items, and uses up none of their failures.
  if (batch.size() > 1 && failures_left_ > 0 && options_.failure == StubFailure::error) {
    throw Error(ErrorCode::internal, "the stub encoder fails a batch, as it was told to");
  }
  std::vector<EncoderOutput> outputs;
  for (const PreprocessedItem* item : batch) outputs.push_back(encode_item(*item));
  return outputs;
}

}  // namespace vitrove
