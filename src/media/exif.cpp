#include "media/exif.h"

#include <string_view>

namespace vitrove {
namespace {

constexpr std::uint16_t orientation_tag = 0x0112;
constexpr std::uint16_t type_short = 3;
constexpr std::uint16_t type_long = 4;
constexpr std::size_t entry_size = 12;

// Numbers of a TIFF structure in its own byte order; nothing when they would lie outside.
class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool is_big_endian)
      : bytes_(bytes), is_big_endian_(is_big_endian) {}

  std::optional<std::uint16_t> u16(std::size_t at) const {
    const auto value = number(at, 2);
    if (!value) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  }
  std::optional<std::uint32_t> u32(std::size_t at) const { return number(at, 4); }

 private:
  std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = is_big_endian_ ? at + i : at + size - 1 - i;
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[from]);
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  bool is_big_endian_;
};

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return head.starts_with(text);
}

std::optional<std::uint32_t> entry_value(const TiffReader& tiff, std::size_t entry) {
  const auto type = tiff.u16(entry + 2);
  const auto count = tiff.u32(entry + 4);
  if (!type || count != 1u) return std::nullopt;
  if (*type == type_short) return tiff.u16(entry + 8);
  if (*type == type_long) return tiff.u32(entry + 8);
  return std::nullopt;
}

std::optional<std::uint32_t> find_orientation(const TiffReader& tiff) {
  const auto directory = tiff.u32(4);
  if (!directory) return std::nullopt;
  const auto count = tiff.u16(*directory);
  if (!count) return std::nullopt;
  std::optional<std::uint32_t> found;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t entry = std::size_t{*directory} + 2 + i * entry_size;
    const auto tag = tiff.u16(entry);
    if (!tag) break;
    if (*tag == orientation_tag) found = entry_value(tiff, entry);
  }
  return found;
}

}  // namespace

std::optional<Orientation> exif_orientation(std::span<const std::byte> block) {
  using namespace std::string_view_literals;
  // Some programs write it twice.
  for (int i = 0; i < 2 && starts_with(block, "Exif\0\0"sv); ++i) block = block.subspan(6);
  const bool is_little = starts_with(block, "II*\0"sv);
  const bool is_big = starts_with(block, "MM\0*"sv);
  if (!is_little && !is_big) return std::nullopt;
  const auto value = find_orientation(TiffReader(block, is_big));
  if (!value) return std::nullopt;
  if (*value < 1 || *value > 8) return Orientation::upright;
  return static_cast<Orientation>(*value);
}

}  // namespace vitrove
