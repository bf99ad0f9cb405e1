#include "media/container_end.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "media/decode_job.h"

namespace vitrove {
namespace {

constexpr std::uint64_t segment_id = 0x18538067;

struct Number {
  std::uint64_t value = 0;
  std::size_t length = 0;
  bool is_unknown = false;  // all bits set: a size that was not known when it was written
};

// A number of one to eight bytes; the first set bit tells how many.
std::optional<Number> read_number(std::span<const std::byte> bytes, bool with_marker) {
  if (bytes.empty()) return std::nullopt;
  const auto first = std::to_integer<std::uint8_t>(bytes[0]);
  const auto length = static_cast<std::size_t>(std::countl_zero(first)) + 1;
  if (length > 8 || length > bytes.size()) return std::nullopt;
  std::uint64_t value = with_marker ? first : first & (0xffU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  const std::uint64_t all_set = (std::uint64_t{1} << (7 * length)) - 1;
  return Number{value, length, !with_marker && value == all_set};
}

}  // namespace

void check_matroska_end(std::span<const std::byte> file) {
  auto rest = file;
  for (;;) {
    const auto id = read_number(rest, true);
    if (!id) return;  // the demuxer will say so
    rest = rest.subspan(id->length);
    const auto size = read_number(rest, false);
    if (!size) return;
    rest = rest.subspan(size->length);
    if (size->is_unknown) return;
    if (size->value > rest.size()) throw_damaged(MediaFormat::webm, "shorter than it says");
    if (id->value == segment_id) return;
    rest = rest.subspan(size->value);
  }
}

}  // namespace vitrove
