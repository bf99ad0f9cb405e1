// GIF through giflib: the first frame on its canvas, as Pillow has it.
//
// The canvas grows when the frame reaches beyond it. What the frame leaves free is transparent
// where the frame has a transparent colour, else colour 0. A frame without any palette is gray.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include <gif_lib.h>

#include "media/decode_job.h"

namespace vitrove {
namespace {

class ByteStream {
 public:
  explicit ByteStream(std::span<const std::byte> bytes) : rest_(bytes) {}

  static int read(GifFileType* gif, GifByteType* to, int size) {
    return static_cast<ByteStream*>(gif->UserData)->copy_to(to, size);
  }

 private:
  int copy_to(GifByteType* to, int size) {
    const std::size_t count = std::min(static_cast<std::size_t>(size), rest_.size());
    if (count > 0) std::memcpy(to, rest_.data(), count);
    rest_ = rest_.subspan(count);
    return static_cast<int>(count);
  }

  std::span<const std::byte> rest_;
};

struct CloseGif {
  void operator()(GifFileType* gif) const {
    int ignored = 0;
    DGifCloseFile(gif, &ignored);
  }
};

struct Color {
  std::uint8_t r, g, b;
};
constexpr Color white{255, 255, 255};

// Rows of an interlaced frame come in four passes: every eighth, the ones between, ...
std::vector<std::uint32_t> row_order(std::uint32_t height, bool is_interlaced) {
  std::vector<std::uint32_t> order;
  order.reserve(height);
  if (!is_interlaced) {
    for (std::uint32_t y = 0; y < height; ++y) order.push_back(y);
    return order;
  }
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 4> passes{
      {{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : passes) {
    for (std::uint32_t y = first; y < height; y += step) order.push_back(y);
  }
  return order;
}

class GifReader {
 public:
  explicit GifReader(std::span<const std::byte> bytes) : stream_(bytes) {
    int status = D_GIF_SUCCEEDED;
    gif_.reset(DGifOpen(&stream_, ByteStream::read, &status));
    if (gif_ == nullptr && status == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    if (gif_ == nullptr) throw_damaged(MediaFormat::gif, "bad header");
  }

  // Up to the first frame's pixels.
  void read_header(const DecodeJob& job) {
    while (next_record(job) != IMAGE_DESC_RECORD_TYPE) {
      if (record_ == TERMINATE_RECORD_TYPE) throw_damaged(MediaFormat::gif, "no frame");
      read_extension();
    }
    check(DGifGetImageDesc(gif_.get()));
    read_palette();
  }

  std::uint32_t width() const { return std::max(screen(gif_->SWidth), left() + frame_width()); }
  std::uint32_t height() const { return std::max(screen(gif_->SHeight), top() + frame_height()); }

  void read_pixels(RgbImage& canvas, const DecodeJob& job) {
    if (!covers(canvas)) fill(canvas, transparent_ ? white : palette_[0]);
    std::vector<GifPixelType> row(frame_width());
    std::size_t rows = 0;
    for (const std::uint32_t y : row_order(frame_height(), gif_->Image.Interlace)) {
      if (rows++ % 64 == 0) job.check_time();
      check(DGifGetLine(gif_.get(), row.data(), static_cast<int>(row.size())));
      put_row(row, canvas.row(top() + y) + std::size_t{3} * left());
    }
  }

  // Later frames are not decoded, but a file that was cut has no end.
  void read_to_end(const DecodeJob& job) {
    while (next_record(job) != TERMINATE_RECORD_TYPE) {
      if (record_ == EXTENSION_RECORD_TYPE) {
        read_extension();
      } else {
        skip_frame();
      }
    }
  }

 private:
  static std::uint32_t screen(GifWord side) { return static_cast<std::uint32_t>(side); }
  std::uint32_t left() const { return screen(gif_->Image.Left); }
  std::uint32_t top() const { return screen(gif_->Image.Top); }
  std::uint32_t frame_width() const { return screen(gif_->Image.Width); }
  std::uint32_t frame_height() const { return screen(gif_->Image.Height); }
  bool covers(const RgbImage& canvas) const {
    return frame_width() == canvas.width && frame_height() == canvas.height;
  }

  void check(int status) const {
    if (status == GIF_OK) return;
    if (gif_->Error == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    throw_damaged(MediaFormat::gif, "giflib error " + std::to_string(gif_->Error));
  }

  GifRecordType next_record(const DecodeJob& job) {
    job.check_time();
    check(DGifGetRecordType(gif_.get(), &record_));
    return record_;
  }

  void read_extension() {
    int code = 0;
    GifByteType* block = nullptr;
    check(DGifGetExtension(gif_.get(), &code, &block));
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr) {
      GraphicsControlBlock control{};
      if (DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_.reset();
        if (control.TransparentColor != NO_TRANSPARENT_COLOR) {
          transparent_ = static_cast<std::uint8_t>(control.TransparentColor);
        }
      }
    }
    while (block != nullptr) check(DGifGetExtensionNext(gif_.get(), &block));
  }

  void skip_frame() {
    check(DGifGetImageHeader(gif_.get()));
    int code_size = 0;
    GifByteType* block = nullptr;
    check(DGifGetCode(gif_.get(), &code_size, &block));
    while (block != nullptr) check(DGifGetCodeNext(gif_.get(), &block));
  }

  void read_palette() {
    const ColorMapObject* map = gif_->Image.ColorMap ? gif_->Image.ColorMap : gif_->SColorMap;
    colors_ = map != nullptr ? static_cast<std::size_t>(map->ColorCount) : palette_.size();
    for (std::size_t i = 0; i < palette_.size(); ++i) {
      const auto gray = static_cast<std::uint8_t>(i);
      palette_[i] = {gray, gray, gray};
      if (map == nullptr || i >= colors_) continue;
      palette_[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
    }
  }

  static void fill(RgbImage& canvas, Color color) {
    for (std::size_t i = 0; i < canvas.pixels.size(); i += 3) put(&canvas.pixels[i], color);
  }

  static void put(std::uint8_t* to, Color color) {
    to[0] = color.r;
    to[1] = color.g;
    to[2] = color.b;
  }

  void put_row(std::span<const GifPixelType> row, std::uint8_t* to) const {
    for (const GifPixelType index : row) {
      const bool is_transparent = transparent_ == index;
      if (!is_transparent && index >= colors_) throw_damaged(MediaFormat::gif, "no such colour");
      put(to, is_transparent ? white : palette_[index]);
      to += 3;
    }
  }

  ByteStream stream_;
  std::unique_ptr<GifFileType, CloseGif> gif_;
  GifRecordType record_ = UNDEFINED_RECORD_TYPE;
  std::optional<std::uint8_t> transparent_;
  std::array<Color, 256> palette_{};
  std::size_t colors_ = 0;
};

}  // namespace

void check_gif_end(std::span<const std::byte> bytes, const DecodeJob& job) {
  GifReader(bytes).read_to_end(job);
}

DecodedImage decode_gif(std::span<const std::byte> bytes, DecodeJob& job) {
  GifReader reader(bytes);
  reader.read_header(job);
  job.check_size(reader.width(), reader.height());
  // Its tables, a row of indexes, and the order of rows.
  constexpr std::uint64_t tables = 64 * 1024;
  job.reserve(reader.width(), reader.height(), Orientation::upright,
              tables + std::uint64_t{4} * (reader.width() + reader.height()));
  RgbImage canvas = allocate_image(reader.width(), reader.height());
  reader.read_pixels(canvas, job);
  reader.read_to_end(job);
  return job.finish(std::move(canvas), MediaFormat::gif, Orientation::upright);
}

}  // namespace vitrove
