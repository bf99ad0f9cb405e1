// The elements that WebM and Matroska files are made of.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vitrove {

struct EbmlNumber {
  std::uint64_t value = 0;
  std::size_t length = 0;
  bool is_unknown = false;  // all bits set: a size that was not known when it was written
};

// A number of one to eight bytes; the first set bit tells how many. Ids keep that bit.
inline std::optional<EbmlNumber> read_ebml_number(std::span<const std::byte> bytes,
                                                  bool with_marker) {
  if (bytes.empty()) return std::nullopt;
  const auto first = std::to_integer<std::uint8_t>(bytes[0]);
  const auto length = static_cast<std::size_t>(std::countl_zero(first)) + 1;
  if (length > 8 || length > bytes.size()) return std::nullopt;
  std::uint64_t value = with_marker ? first : first & (0xffU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  const std::uint64_t all_set = (std::uint64_t{1} << (7 * length)) - 1;
  return EbmlNumber{value, length, !with_marker && value == all_set};
}

struct EbmlElement {
  std::uint64_t id = 0;
  std::optional<std::uint64_t> size;  // nothing when it was not known
  std::span<const std::byte> body;    // what there is of it
};

// Takes the next element off `rest`; one that is longer than what is there, or of unknown size,
// ends there. Nothing at the end, and where no element begins.
inline std::optional<EbmlElement> take_element(std::span<const std::byte>& rest) {
  const auto id = read_ebml_number(rest, true);
  if (!id) return std::nullopt;
  const auto size = read_ebml_number(rest.subspan(id->length), false);
  if (!size) return std::nullopt;
  EbmlElement element{id->value, std::nullopt, rest.subspan(id->length + size->length)};
  if (!size->is_unknown) element.size = size->value;
  if (element.size && *element.size < element.body.size()) {
    element.body = element.body.first(*element.size);
  }
  rest = rest.subspan(id->length + size->length + element.body.size());
  return element;
}

}  // namespace vitrove
