#include "media/bmp_header.h"

#include <algorithm>
#include <bit>

#include "base/little_endian.h"
#include "media/decode_job.h"

namespace vitrove {
namespace {

constexpr std::size_t file_header_size = 14;
constexpr std::uint32_t core_size = 12;  // OS/2's first version
constexpr std::uint32_t info_size = 40;
constexpr std::uint32_t with_alpha_mask_size = 56;

enum Compression : std::uint32_t {
  plain = 0,
  rle8 = 1,
  rle4 = 2,
  bit_fields = 3,
  alpha_fields = 6
};

template <typename Number>
Number read(std::span<const std::byte> bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(Number)) {
    throw_damaged(MediaFormat::bmp, "ends within its header");
  }
  return load_le<Number>(bytes.data() + at);
}

[[noreturn]] void throw_unknown_bmp() {
  throw Error(ErrorCode::unsupported_format, "this kind of bmp is not supported");
}

struct RawHeader {
  std::uint32_t size = 0;
  std::uint32_t compression = plain;
  std::uint32_t colors = 0;
};

RawHeader read_sizes(std::span<const std::byte> file, BmpHeader& header) {
  RawHeader raw;
  const auto info = file.subspan(std::min(file.size(), file_header_size));
  raw.size = read<std::uint32_t>(info, 0);
  if (raw.size == core_size) {
    header.width = read<std::uint16_t>(info, 4);
    header.height = read<std::uint16_t>(info, 6);
    header.bits = read<std::uint16_t>(info, 10);
    return raw;
  }
  if (raw.size < info_size || raw.size > 1024) throw_damaged(MediaFormat::bmp, "bad header size");
  const auto width = static_cast<std::int32_t>(read<std::uint32_t>(info, 4));
  const auto height = static_cast<std::int32_t>(read<std::uint32_t>(info, 8));
  if (width < 0) throw_damaged(MediaFormat::bmp, "negative width");
  header.width = static_cast<std::uint32_t>(width);
  header.is_top_down = height < 0;
  header.height = static_cast<std::uint32_t>(height < 0 ? -std::int64_t{height} : height);
  header.bits = read<std::uint16_t>(info, 14);
  raw.compression = read<std::uint32_t>(info, 16);
  raw.colors = read<std::uint32_t>(info, 32);
  return raw;
}

void set_kind(const RawHeader& raw, BmpHeader& header) {
  const unsigned bits = header.bits;
  const bool is_indexed = bits == 1 || bits == 4 || bits == 8;
  const bool is_deep = bits == 16 || bits == 32;
  if ((raw.compression == rle8 && bits == 8) || (raw.compression == rle4 && bits == 4)) {
    header.kind = BmpPixels::run_length;
  } else if (raw.compression == plain && is_indexed) {
    header.kind = BmpPixels::indexed;
  } else if (raw.compression == plain && bits == 24) {
    header.kind = BmpPixels::bgr24;
  } else if (is_deep && (raw.compression == plain || raw.compression == bit_fields ||
                         raw.compression == alpha_fields)) {
    header.kind = BmpPixels::masked;
  } else {
    throw_unknown_bmp();
  }
}

// Where there are no masks, 5 bits a channel or 8; the upper byte of 32 bits is then no alpha.
void read_masks(std::span<const std::byte> file, const RawHeader& raw, BmpHeader& header) {
  std::array<std::uint32_t, 4> bits{0x7c00, 0x3e0, 0x1f, 0};
  if (header.bits == 32) bits = {0xff0000, 0xff00, 0xff, 0};
  if (raw.compression != plain) {
    const bool has_alpha = raw.size >= with_alpha_mask_size || raw.compression == alpha_fields;
    for (std::size_t i = 0; i < (has_alpha ? 4 : 3); ++i) {
      bits[i] = read<std::uint32_t>(file, file_header_size + info_size + 4 * i);
    }
  }
  for (std::size_t i = 0; i < bits.size(); ++i) header.masks[i] = BmpMask::of(bits[i]);
  for (std::size_t i = 0; i < 3; ++i) {
    if (header.masks[i].most == 0) throw_damaged(MediaFormat::bmp, "a channel has no bits");
  }
}

void read_palette(std::span<const std::byte> file, const RawHeader& raw, BmpHeader& header) {
  const std::size_t most = std::size_t{1} << header.bits;
  const std::size_t count = raw.colors == 0 ? most : std::min<std::size_t>(raw.colors, most);
  const std::size_t entry = raw.size == core_size ? 3 : 4;
  const std::size_t start = file_header_size + raw.size;
  if (start > file.size() || (file.size() - start) / entry < count) {
    throw_damaged(MediaFormat::bmp, "ends within its palette");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t offset) {
      return std::to_integer<std::uint8_t>(file[start + i * entry + offset]);
    };
    header.palette.push_back({at(2), at(1), at(0)});
  }
}

}  // namespace

BmpMask BmpMask::of(std::uint32_t bits) {
  if (bits == 0) return {};
  const auto shift = static_cast<unsigned>(std::countr_zero(bits));
  return {bits, shift, bits >> shift};
}

BmpHeader read_bmp_header(std::span<const std::byte> file) {
  BmpHeader header;
  const RawHeader raw = read_sizes(file, header);
  set_kind(raw, header);
  if (header.kind == BmpPixels::masked) read_masks(file, raw, header);
  if (header.bits <= 8) read_palette(file, raw, header);
  const auto offset = read<std::uint32_t>(file, 10);
  if (offset > file.size()) throw_damaged(MediaFormat::bmp, "no pixels");
  header.data = file.subspan(offset);
  return header;
}

}  // namespace vitrove
