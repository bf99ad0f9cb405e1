// AVIF and HEIC through libheif, where it is installed.
//
// libheif applies the turns, mirrors and crops that the file asks for; an EXIF orientation beside
// them is for information only, as the format has it.
#include <algorithm>
#include <memory>
#include <string>

#include "media/composite.h"
#include "media/decode_job.h"
#include "media/heif_items.h"
#include "media/heif_library.h"

namespace vitrove {
namespace {

// Of libheif's enumerations.
constexpr int colorspace_rgb = 1;
constexpr int interleaved_rgb = 10;
constexpr int interleaved_rgba = 11;
constexpr int channel_interleaved = 10;
constexpr int error_unsupported_feature = 4;
constexpr int error_unsupported_filetype = 3;

class HeifReader {
 public:
  HeifReader(const HeifLibrary& heif, MediaFormat format, std::span<const std::byte> bytes)
      : heif_(heif),
        format_(format),
        context_(heif.context_alloc(), heif.context_free),
        handle_(nullptr, heif.image_handle_release),
        image_(nullptr, heif.image_release) {
    if (!context_) throw std::bad_alloc();
    // The turns of the server are one thread each.
    if (heif_.context_set_max_decoding_threads != nullptr) {
      heif_.context_set_max_decoding_threads(context_.get(), 0);
    }
    check(heif_.context_read_from_memory_without_copy(context_.get(), bytes.data(), bytes.size(),
                                                      nullptr));
    HeifHandle* handle = nullptr;
    check(heif_.context_get_primary_image_handle(context_.get(), &handle));
    handle_.reset(handle);
  }

  std::uint32_t width() const { return side(heif_.image_handle_get_width(handle_.get())); }
  std::uint32_t height() const { return side(heif_.image_handle_get_height(handle_.get())); }
  bool has_alpha() const { return heif_.image_handle_has_alpha_channel(handle_.get()) != 0; }

  // Where the file names the turn before the size, some libheif tell the sides as they lie in the
  // file (cameras write it so); the picture itself is upright.
  void decode() {
    HeifImage* image = nullptr;
    check(heif_.decode_image(handle_.get(), &image, colorspace_rgb,
                             has_alpha() ? interleaved_rgba : interleaved_rgb, nullptr));
    image_.reset(image);
    const std::uint32_t wide = decoded_width();
    const std::uint32_t high = decoded_height();
    if ((wide == width() && high == height()) || (wide == height() && high == width())) return;
    throw_damaged(format_, "the picture is not of the size that the header says");
  }

  std::uint32_t decoded_width() const {
    return side(heif_.image_get_width(image_.get(), channel_interleaved));
  }
  std::uint32_t decoded_height() const {
    return side(heif_.image_get_height(image_.get(), channel_interleaved));
  }

  void copy_pixels(RgbImage& to) const {
    int stride = 0;
    const std::uint8_t* row =
        heif_.image_get_plane_readonly(image_.get(), channel_interleaved, &stride);
    if (row == nullptr) throw_damaged(format_, "no pixels");
    for (std::size_t y = 0; y < to.height; ++y, row += stride) {
      if (has_alpha()) {
        composite_row(row, to.row(y), to.width);
      } else {
        std::copy_n(row, to.row_bytes(), to.row(y));
      }
    }
  }

 private:
  static std::uint32_t side(int value) { return static_cast<std::uint32_t>(std::max(value, 0)); }

  void check(const HeifError& error) const {
    if (error.code == 0) return;
    if (error.code == error_unsupported_feature || error.code == error_unsupported_filetype) {
      throw Error(ErrorCode::unsupported_format,
                  "this kind of " + std::string(to_string(format_)) +
                      " cannot be decoded by the libheif of this server",
                  error.message);
    }
    throw_damaged(format_, error.message);
  }

  const HeifLibrary& heif_;
  const MediaFormat format_;
  std::unique_ptr<HeifContext, void (*)(HeifContext*)> context_;
  std::unique_ptr<const HeifHandle, void (*)(const HeifHandle*)> handle_;
  std::unique_ptr<const HeifImage, void (*)(const HeifImage*)> image_;
};

// Coded pictures are padded, tiles reach beyond the edges, and alpha is a picture of its own.
void check_claims(const HeifClaims& claims, MediaFormat format, std::size_t file_bytes,
                  const DecodeJob& job) {
  if (claims.item_bytes > 2 * file_bytes) throw_damaged(format, "more items than bytes");
  const std::uint64_t limit = job.limits().max_pixels;
  if (claims.work_pixels / 2 <= limit) return;
  throw Error(ErrorCode::too_large, "the pictures inside this " + std::string(to_string(format)) +
                                        " file exceed twice the limit of " + std::to_string(limit) +
                                        " pixels");
}

}  // namespace

DecodedImage decode_heif(MediaFormat format, std::span<const std::byte> bytes, DecodeJob& job) {
  const HeifLibrary* heif = heif_library();
  if (heif == nullptr) {
    throw Error(ErrorCode::unsupported_format,
                std::string(to_string(format)) + " needs libheif, which this server does not have");
  }
  const HeifClaims claims = heif_claims(bytes);
  check_claims(claims, format, bytes.size(), job);
  HeifReader reader(*heif, format, bytes);
  job.check_size(reader.width(), reader.height());
  // The planes, the same in the file's orientation, and RGBA; and libheif's copies of the items.
  const std::uint64_t pixels =
      std::max(std::uint64_t{reader.width()} * reader.height(), claims.largest_pixels);
  job.reserve(reader.width(), reader.height(), Orientation::upright,
              12 * pixels + 2 * claims.item_bytes);
  reader.decode();
  RgbImage image = allocate_image(reader.decoded_width(), reader.decoded_height());
  reader.copy_pixels(image);
  return job.finish(std::move(image), format, Orientation::upright);
}

}  // namespace vitrove
