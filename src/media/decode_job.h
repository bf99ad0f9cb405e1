// What the decoders share: limits, the memory lease and time of one picture being decoded.
#pragma once

#include "media/exif.h"
#include "vitrove/error.h"
#include "vitrove/media.h"

namespace vitrove {

class DecodeJob {
 public:
  DecodeJob(const ImageLimits& limits, const DecodeContext& context)
      : limits_(limits), context_(context) {}

  const ImageLimits& limits() const { return limits_; }

  // Before anything is allocated: throws Error{too_large} or, for a side of zero,
  // Error{invalid_argument}.
  void check_size(std::uint64_t width, std::uint64_t height,
                  std::string_view what = "an image") const;

  // Video and audio: takes the lease for `own_bytes` that stay and, beside them, the larger of
  // `scratch_bytes` and what the caller wants. At most once a job. `advice` ends the error for what
  // can never be had.
  void reserve_for(const MediaShape& shape, std::uint64_t own_bytes, std::uint64_t scratch_bytes,
                   std::string_view advice = {});
  // The lease, with the part that the result of this size and the caller need.
  MemoryLease take_lease(std::uint64_t own_bytes);

  // For what has to be made before the need is known: so much, or all there can be. Given back
  // before the job's own lease is asked for; nothing once that is there.
  MemoryLease lease_beforehand(std::uint64_t bytes) const;

  // Takes the lease for the peak need: the RGB pixels (twice if they must be turned), and beside
  // them `scratch_bytes` or what the caller wants later. At most once a job.
  void reserve(std::uint64_t width, std::uint64_t height, Orientation orientation,
               std::uint64_t scratch_bytes);

  // How many times smaller the caller wants a JPEG: 1, 2, 4 or 8.
  std::uint32_t jpeg_reduction(std::uint32_t width, std::uint32_t height,
                               Orientation orientation) const;

  // Throws Error{deadline_exceeded} or Error{cancelled}.
  void check_time() const;
  // The same without an exception, for callbacks from C.
  bool must_stop() const noexcept;

  // The picture upright, holding the part of the lease that its pixels and the caller need.
  DecodedImage finish(RgbImage image, MediaFormat format, Orientation orientation);

 private:
  const ImageLimits& limits_;
  const DecodeContext& context_;
  MemoryLease lease_;
  std::uint64_t beside_bytes_ = 0;
};

RgbImage allocate_image(std::uint32_t width, std::uint32_t height);

// One per format. `bytes` are known to start with the format's signature.
DecodedImage decode_jpeg(std::span<const std::byte> bytes, DecodeJob& job);
DecodedImage decode_png(std::span<const std::byte> bytes, DecodeJob& job);
DecodedImage decode_webp(std::span<const std::byte> bytes, DecodeJob& job);
DecodedImage decode_gif(std::span<const std::byte> bytes, DecodeJob& job);
// Throws the error for damage when the blocks of a GIF do not lead to its end.
void check_gif_end(std::span<const std::byte> bytes, const DecodeJob& job);
DecodedImage decode_bmp(std::span<const std::byte> bytes, DecodeJob& job);
DecodedImage decode_tiff(std::span<const std::byte> bytes, DecodeJob& job);
DecodedImage decode_heif(MediaFormat format, std::span<const std::byte> bytes, DecodeJob& job);

// An empty item, or one that is larger than allowed.
void check_item_bytes(std::span<const std::byte> bytes, std::uint64_t most);

[[noreturn]] void throw_out_of_memory();

// The one error for files that do not hold what they should. `detail` goes to the log.
[[noreturn]] void throw_damaged(MediaFormat format, const std::string& detail);

}  // namespace vitrove
