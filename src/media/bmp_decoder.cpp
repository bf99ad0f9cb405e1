// BMP, by ourselves: it is a header and rows.
#include <algorithm>

#include "base/little_endian.h"
#include "media/bmp_header.h"
#include "media/composite.h"
#include "media/decode_job.h"

namespace vitrove {
namespace {

void put_color(const BmpHeader& header, std::size_t index, std::uint8_t* to) {
  if (index >= header.palette.size()) throw_damaged(MediaFormat::bmp, "no such colour");
  std::ranges::copy(header.palette[index], to);
}

void read_indexed(const BmpHeader& header, const std::byte* from, std::uint8_t* to) {
  const unsigned per_byte = 8 / header.bits;
  const unsigned mask = (1U << header.bits) - 1;
  for (std::uint32_t x = 0; x < header.width; ++x, to += 3) {
    const unsigned shift = (per_byte - 1 - x % per_byte) * header.bits;
    put_color(header, std::to_integer<unsigned>(from[x / per_byte]) >> shift & mask, to);
  }
}

void read_bgr24(const BmpHeader& header, const std::byte* from, std::uint8_t* to) {
  for (std::uint32_t x = 0; x < header.width; ++x, from += 3, to += 3) {
    for (std::size_t c = 0; c < 3; ++c) to[c] = std::to_integer<std::uint8_t>(from[2 - c]);
  }
}

void read_masked(const BmpHeader& header, const std::byte* from, std::uint8_t* to) {
  const std::size_t size = header.bits / 8;
  for (std::uint32_t x = 0; x < header.width; ++x, from += size, to += 3) {
    const std::uint32_t pixel =
        size == 2 ? load_le<std::uint16_t>(from) : load_le<std::uint32_t>(from);
    const auto& masks = header.masks;
    const std::uint8_t alpha = masks[3].most == 0 ? 255 : masks[3].value(pixel);
    for (std::size_t c = 0; c < 3; ++c) to[c] = composite_on_white(masks[c].value(pixel), alpha);
  }
}

void read_row(const BmpHeader& header, const std::byte* from, std::uint8_t* to) {
  switch (header.kind) {
    case BmpPixels::bgr24:
      return read_bgr24(header, from, to);
    case BmpPixels::masked:
      return read_masked(header, from, to);
    default:
      return read_indexed(header, from, to);
  }
}

std::uint8_t* row_at(RgbImage& image, const BmpHeader& header, std::size_t y) {
  return image.row(header.is_top_down ? y : image.height - 1 - y);
}

void read_rows(const BmpHeader& header, RgbImage& image, const DecodeJob& job) {
  for (std::size_t y = 0; y < image.height; ++y) {
    if (y % 64 == 0) job.check_time();
    read_row(header, header.data.data() + y * header.row_bytes(), row_at(image, header, y));
  }
}

// Pairs of a count and a colour; a count of zero starts an order: end of row, end of picture, a
// jump, or colours as they are. What is jumped over has colour 0.
class RunLengths {
 public:
  RunLengths(const BmpHeader& header, RgbImage& image)
      : header_(header), image_(image), rest_(header.data) {
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
      put_color(header, 0, &image.pixels[i]);
    }
  }

  void read(const DecodeJob& job) {
    for (std::size_t step = 0; !is_over_; ++step) {
      if (step % 4096 == 0) job.check_time();
      const unsigned count = next();
      const unsigned value = next();
      if (count > 0) {
        for (unsigned i = 0; i < count; ++i) put(color_of(value, i));
      } else {
        follow(value);
      }
    }
  }

 private:
  unsigned next() {
    if (rest_.empty()) throw_damaged(MediaFormat::bmp, "ends within its pixels");
    const auto value = std::to_integer<unsigned>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }

  // The nth pixel of a run: with 4 bits the two halves take turns.
  unsigned color_of(unsigned value, unsigned nth) const {
    if (header_.bits == 8) return value;
    return nth % 2 == 0 ? value >> 4 : value & 15;
  }

  void put(unsigned color) {
    if (y_ >= image_.height) throw_damaged(MediaFormat::bmp, "more rows than it has");
    if (x_ >= image_.width) return;  // some writers pad their rows
    put_color(header_, color, row_at(image_, header_, y_) + 3 * x_);
    ++x_;
  }

  void follow(unsigned order) {
    if (order == 0) {
      x_ = 0;
      ++y_;
    } else if (order == 1) {
      is_over_ = true;
    } else if (order == 2) {
      x_ += next();
      y_ += next();
    } else {
      read_literally(order);
    }
  }

  void read_literally(unsigned count) {
    const unsigned per_byte = 8 / header_.bits;
    const unsigned bytes = (count + per_byte - 1) / per_byte;
    unsigned value = 0;
    for (unsigned i = 0; i < count; ++i) {
      if (i % per_byte == 0) value = next();
      put(color_of(value, i));
    }
    if (bytes % 2 == 1) next();  // padding to 16 bits
  }

  const BmpHeader& header_;
  RgbImage& image_;
  std::span<const std::byte> rest_;
  std::size_t x_ = 0;
  std::size_t y_ = 0;
  bool is_over_ = false;
};

}  // namespace

DecodedImage decode_bmp(std::span<const std::byte> bytes, DecodeJob& job) {
  const BmpHeader header = read_bmp_header(bytes);
  job.check_size(header.width, header.height);
  const bool is_run_length = header.kind == BmpPixels::run_length;
  if (!is_run_length && header.data.size() / header.row_bytes() < header.height) {
    throw_damaged(MediaFormat::bmp, "ends within its pixels");
  }
  job.reserve(header.width, header.height, Orientation::upright, 0);
  RgbImage image = allocate_image(header.width, header.height);
  if (is_run_length) {
    RunLengths(header, image).read(job);
  } else {
    read_rows(header, image, job);
  }
  return job.finish(std::move(image), MediaFormat::bmp, Orientation::upright);
}

}  // namespace vitrove
