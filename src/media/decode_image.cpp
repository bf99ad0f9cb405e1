#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/large_vector.h"
#include "media/decode_job.h"
#include "media/decoder_versions.h"
#include "media/orientation.h"

namespace vitrove {
namespace {

// Raise a number whenever the decoded bytes of any file of the format may change.
constexpr std::uint32_t jpeg_version = 2;
constexpr std::uint32_t png_version = 2;
constexpr std::uint32_t webp_version = 2;
constexpr std::uint32_t gif_version = 1;
constexpr std::uint32_t bmp_version = 1;
constexpr std::uint32_t tiff_version = 2;
constexpr std::uint32_t heif_version = 1;

void check_image_format(MediaFormat format) {
  if (is_decodable(format, Modality::image)) return;
  constexpr const char* supported = " (supported: jpeg, png, webp, gif, bmp, tiff, avif, heic)";
  if (format == MediaFormat::unknown) {
    throw Error(ErrorCode::unsupported_format, std::string("unknown media format") + supported);
  }
  throw Error(ErrorCode::unsupported_format,
              std::string(to_string(format)) + " is not a supported image format" + supported);
}

DecodedImage decode_as(MediaFormat format, std::span<const std::byte> bytes, DecodeJob& job) {
  switch (format) {
    case MediaFormat::jpeg:
      return decode_jpeg(bytes, job);
    case MediaFormat::png:
      return decode_png(bytes, job);
    case MediaFormat::gif:
      return decode_gif(bytes, job);
    case MediaFormat::bmp:
      return decode_bmp(bytes, job);
    case MediaFormat::tiff:
      return decode_tiff(bytes, job);
    case MediaFormat::avif:
    case MediaFormat::heic:
      return decode_heif(format, bytes, job);
    default:
      return decode_webp(bytes, job);
  }
}

}  // namespace

void DecodeJob::check_size(std::uint64_t width, std::uint64_t height, std::string_view what) const {
  if (width == 0 || height == 0) {
    throw Error(ErrorCode::invalid_argument, std::string(what) + " has no pixels");
  }
  const auto fail = [&](const std::string& limit) {
    throw Error(ErrorCode::too_large, std::string(what) + " of " + std::to_string(width) + " x " +
                                          std::to_string(height) + " pixels exceeds the limit of " +
                                          limit);
  };
  if (width > limits_.max_side || height > limits_.max_side) {
    fail(std::to_string(limits_.max_side) + " pixels a side");
  }
  if (width * height > limits_.max_pixels) {
    fail(std::to_string(limits_.max_pixels) + " pixels");
  }
}

void DecodeJob::reserve(std::uint64_t width, std::uint64_t height, Orientation orientation,
                        std::uint64_t scratch_bytes) {
  if (context_.budget == nullptr) return;
  const std::uint64_t pictures = needs_second_buffer(orientation) ? 2 : 1;
  // Decoding, turning and what the caller does do not overlap, so the largest of them counts.
  const std::uint64_t rgb = 3 * width * height;
  if (context_.bytes_beside) {
    const bool turned = swaps_sides(orientation);
    MediaShape shape{.work_pixels = width * height};
    shape.width = static_cast<std::uint32_t>(turned ? height : width);
    shape.height = static_cast<std::uint32_t>(turned ? width : height);
    beside_bytes_ = context_.bytes_beside(shape);
  }
  const std::uint64_t peak = rgb + std::max({scratch_bytes, rgb * (pictures - 1), beside_bytes_});
  lease_ = context_.budget->acquire(peak, context_.deadline, context_.cancel);
}

std::uint32_t DecodeJob::jpeg_reduction(std::uint32_t width, std::uint32_t height,
                                        Orientation orientation) const {
  if (!context_.jpeg_reduction) return 1;
  if (swaps_sides(orientation)) std::swap(width, height);
  return context_.jpeg_reduction(width, height);
}

void DecodeJob::reserve_for(const MediaShape& shape, std::uint64_t own_bytes,
                            std::uint64_t scratch_bytes, std::string_view advice) {
  if (context_.budget == nullptr) return;
  if (context_.bytes_beside) beside_bytes_ = context_.bytes_beside(shape);
  const std::uint64_t need = own_bytes + std::max(scratch_bytes, beside_bytes_);
  try {
    lease_ = context_.budget->acquire(need, context_.deadline, context_.cancel);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::too_large || advice.empty()) throw;
    throw Error(ErrorCode::too_large, error.what() + std::string(advice));
  }
}

MemoryLease DecodeJob::lease_beforehand(std::uint64_t bytes) const {
  if (context_.budget == nullptr || lease_.bytes() > 0) return {};
  return context_.budget->acquire(std::min(bytes, context_.budget->capacity()), context_.deadline,
                                  context_.cancel);
}

MemoryLease DecodeJob::take_lease(std::uint64_t own_bytes) {
  lease_.shrink_to(own_bytes + beside_bytes_);
  return std::move(lease_);
}

bool DecodeJob::must_stop() const noexcept {
  return context_.cancel.stop_requested() || std::chrono::steady_clock::now() >= context_.deadline;
}

void DecodeJob::check_time() const {
  if (!must_stop()) return;
  if (context_.cancel.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled");
  throw Error(ErrorCode::deadline_exceeded, "decoding took too long");
}

DecodedImage DecodeJob::finish(RgbImage image, MediaFormat format, Orientation orientation) {
  DecodedImage result{make_upright(std::move(image), orientation), format, std::move(lease_)};
  result.lease.shrink_to(result.image.pixels.size() + beside_bytes_);
  return result;
}

RgbImage allocate_image(std::uint32_t width, std::uint32_t height) {
  return {width, height, make_large_vector<std::uint8_t>(std::size_t{3} * width * height)};
}

void throw_damaged(MediaFormat format, const std::string& detail) {
  throw Error(ErrorCode::invalid_argument,
              "the " + std::string(to_string(format)) + " file is damaged or incomplete", detail);
}

void check_item_bytes(std::span<const std::byte> bytes, std::uint64_t most) {
  if (bytes.empty()) throw Error(ErrorCode::invalid_argument, "the item is empty");
  if (bytes.size() > most) {
    throw Error(ErrorCode::too_large,
                "the item exceeds the limit of " + std::to_string(most) + " bytes");
  }
}

void throw_out_of_memory() {
  throw Error(ErrorCode::unavailable, "out of memory while decoding, try again later");
}

DecodedImage decode_image(std::span<const std::byte> bytes, const ImageLimits& limits,
                          const DecodeContext& context) {
  check_item_bytes(bytes, limits.max_item_bytes);
  const MediaFormat format = sniff(bytes);
  check_image_format(format);
  DecodeJob job(limits, context);
  job.check_time();
  try {
    return decode_as(format, bytes, job);
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
}

std::vector<PipelineVersion> image_decoder_versions() {
  return {{"jpeg", jpeg_version}, {"png", png_version}, {"webp", webp_version},
          {"gif", gif_version},   {"bmp", bmp_version}, {"tiff", tiff_version},
          {"heif", heif_version}};
}

}  // namespace vitrove
