#include "media/coded_size.h"

#include <algorithm>
#include <vector>

#include "media/iso_boxes.h"

namespace vitrove {
namespace {

// Zeros once nothing is left.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t take(unsigned count) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value = value << 1 | next();
    return value;
  }
  bool flag() { return next() != 0; }
  void skip(std::size_t count) { at_ += count; }

  // As many zeros as bits follow the first one.
  std::uint64_t exp_golomb() {
    unsigned zeros = 0;
    while (zeros < 32 && at_ < bytes_.size() * 8 && !flag()) ++zeros;
    return (std::uint64_t{1} << zeros) - 1 + take(zeros);
  }

 private:
  std::uint64_t next() {
    const std::size_t byte = at_ / 8;
    if (byte >= bytes_.size()) return 0;
    const auto shift = static_cast<unsigned>(7 - at_++ % 8);
    return std::to_integer<std::uint64_t>(bytes_[byte]) >> shift & 1;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

// AV1 specification, section 5.5: what stands before the size.
void skip_operating_points(BitReader& bits) {
  unsigned delay_bits = 0;
  const bool has_timing = bits.flag();
  if (has_timing) {
    bits.skip(64);
    if (bits.flag()) bits.exp_golomb();
    if (bits.flag()) {
      delay_bits = static_cast<unsigned>(bits.take(5)) + 1;
      bits.skip(32 + 5 + 5);
    }
  }
  const bool has_display_delay = bits.flag();
  const std::uint64_t count = bits.take(5) + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    bits.skip(12);
    if (bits.take(5) > 7) bits.skip(1);
    if (delay_bits > 0 && bits.flag()) bits.skip(std::size_t{2} * delay_bits + 1);
    if (has_display_delay && bits.flag()) bits.skip(4);
  }
}

CodedSize av1_sequence_size(std::span<const std::byte> header) {
  BitReader bits(header);
  bits.skip(3 + 1);
  const bool is_reduced = bits.flag();
  if (is_reduced) {
    bits.skip(5);
  } else {
    skip_operating_points(bits);
  }
  const auto width_bits = static_cast<unsigned>(bits.take(4)) + 1;
  const auto height_bits = static_cast<unsigned>(bits.take(4)) + 1;
  CodedSize size;
  size.width = bits.take(width_bits) + 1;
  size.height = bits.take(height_bits) + 1;
  return size;
}

std::uint64_t take_leb128(BoxReader& reader) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const std::uint64_t byte = reader.take(1);
    value |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) == 0) break;
  }
  return value;
}

// Without the bytes that keep start codes from appearing inside a unit.
std::vector<std::byte> without_escapes(std::span<const std::byte> unit) {
  std::vector<std::byte> plain;
  plain.reserve(unit.size());
  int zeros = 0;
  for (const std::byte byte : unit) {
    if (zeros >= 2 && byte == std::byte{3}) {
      zeros = 0;
      continue;
    }
    zeros = byte == std::byte{0} ? zeros + 1 : 0;
    plain.push_back(byte);
  }
  return plain;
}

// H.265, section 7.3.3.
void skip_profile_and_levels(BitReader& bits, std::uint64_t sub_layers) {
  constexpr std::size_t profile_bits = 88;
  constexpr std::size_t level_bits = 8;
  bits.skip(profile_bits + level_bits);
  std::size_t more = 0;
  for (std::uint64_t i = 0; i < sub_layers; ++i) {
    if (bits.flag()) more += profile_bits;
    if (bits.flag()) more += level_bits;
  }
  if (sub_layers > 0) bits.skip(2 * (8 - sub_layers));
  bits.skip(more);
}

}  // namespace

CodedSize larger(CodedSize a, CodedSize b) { return a.pixels() < b.pixels() ? b : a; }

CodedSize av1_size(std::span<const std::byte> units) {
  constexpr std::uint64_t sequence_header = 1;
  CodedSize largest;
  BoxReader reader(units);
  while (!reader.is_empty()) {
    const std::uint64_t head = reader.take(1);
    if ((head & 4) != 0) reader.skip(1);
    const std::uint64_t size = (head & 2) != 0 ? take_leb128(reader) : reader.rest().size();
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(size, units.size()));
    const auto unit = reader.rest().first(std::min(length, reader.rest().size()));
    if ((head >> 3 & 15) == sequence_header) largest = larger(largest, av1_sequence_size(unit));
    reader.skip(length);
  }
  return largest;
}

CodedSize hevc_unit_size(std::span<const std::byte> unit) {
  constexpr std::uint64_t sequence_parameters = 33;
  constexpr std::size_t longest = 4096;  // the size stands within the first hundred bytes
  constexpr std::uint64_t largest_side = std::uint64_t{1} << 31;
  if ((read_be(unit, 0, 1) >> 1 & 63) != sequence_parameters) return {};
  const auto plain = without_escapes(unit.subspan(0, std::min(unit.size(), longest)));
  BitReader bits(plain);
  bits.skip(16 + 4);
  const std::uint64_t sub_layers = bits.take(3);
  bits.skip(1);
  skip_profile_and_levels(bits, sub_layers);
  bits.exp_golomb();
  if (bits.exp_golomb() == 3) bits.skip(1);
  CodedSize size;
  size.width = std::min(bits.exp_golomb(), largest_side);
  size.height = std::min(bits.exp_golomb(), largest_side);
  return size;
}

CodedSize hevc_size(std::span<const std::byte> units) {
  CodedSize largest;
  BoxReader reader(units);
  while (!reader.is_empty()) {
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(reader.take(4), reader.rest().size()));
    largest = larger(largest, hevc_unit_size(reader.rest().first(length)));
    reader.skip(length);
  }
  return largest;
}

}  // namespace vitrove
