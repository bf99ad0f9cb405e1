// A header as somebody who can write to a store may have made it. Each input is tried as it is, and
// again with its magic and checksum made right, so that the fuzzer gets past them.
#include <cstdint>
#include <cstring>

#include "base/little_endian.h"
#include "fuzz/check.h"
#include "identity/header_layout.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace {

using namespace vitrove;
using fuzz::check;

__extension__ using Wide = unsigned __int128;

Wide exact_size(const ValueHeader& header) {
  return value_header_size + Wide{header.rows} * header.dim * element_size(header.dtype) +
         header.side_bytes;
}

void check_accepted(std::span<const std::byte> bytes, std::uint64_t object_bytes,
                    const ValueHeader& header) {
  check(exact_size(header) == object_bytes, "an accepted header says the object's exact size");
  check(header.value_bytes() == object_bytes, "value_bytes() is exact");
  check(header.side_bytes <= max_side_bytes, "side data is bounded");
  const bool is_alias = header.kind == ValueKind::alias;
  check(is_alias || header.kind == ValueKind::embedding, "the kind is known");
  check(is_alias ? header.rows == 0 : header.rows >= 1 && header.dim >= 1, "rows fit the kind");
  check(parse_modality(to_string(header.modality)).has_value(), "the modality is known");
  check(parse_dtype(to_string(header.dtype)).has_value(), "the dtype is known");

  const HeaderBytes again = encode_header(header);
  ValueHeader back;
  check(parse_header(again, object_bytes, back) == Reject::none,
        "what was accepted can be written");
  check(back == header, "and comes back");
  const auto format = load_le<std::uint16_t>(bytes.data() + header_layout::format_version);
  if (format == value_format_version) {
    check(std::memcmp(again.data(), bytes.data(), again.size()) == 0, "a header has one spelling");
  }

  ValueExpectation expected{header.key,    header.model_fingerprint,
                            header.tenant, header.modality,
                            header.dtype,  header.dim,
                            header.rows};
  check(check_value(header, expected) == Reject::none, "a value is what it is");
  expected.key.digest.bytes[7] ^= std::byte{1};
  check(check_value(header, expected) == Reject::key, "and not another");
}

Reject try_parse(std::span<const std::byte> bytes, std::uint64_t object_bytes) {
  ValueHeader header;
  header.created_us = 77;
  const ValueHeader before = header;
  const Reject result = parse_header(bytes, object_bytes, header);
  if (result == Reject::none) {
    check_accepted(bytes, object_bytes, header);
  } else {
    check(header == before, "a rejected header leaves the output alone");
  }
  return result;
}

// The size that would fit the header's own fields, in arithmetic that may wrap.
std::uint64_t claimed_size(const HeaderBytes& bytes) {
  return value_header_size + load_le<std::uint64_t>(bytes.data() + header_layout::payload_bytes) +
         load_le<std::uint32_t>(bytes.data() + header_layout::side_bytes);
}

void try_forged(HeaderBytes bytes) {
  std::memcpy(bytes.data(), header_layout::magic_text.data(), header_layout::magic_text.size());
  header_layout::seal(bytes);
  const std::uint64_t size = claimed_size(bytes);
  const Reject result = try_parse(bytes, size);
  check(result != Reject::magic && result != Reject::header_checksum,
        "magic and checksum are right");
  if (result != Reject::none) return;
  ValueHeader ignored;
  check(parse_header(bytes, size + 1, ignored) == Reject::size,
        "no object of another size will do");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  try_parse(input, input.size());
  if (input.size() < value_header_size) return 0;
  HeaderBytes header;
  std::memcpy(header.data(), input.data(), header.size());
  try_parse(input, claimed_size(header));
  try_forged(header);
  // And with sizes that agree, since a fuzzer rarely multiplies.
  const auto rows = load_le<std::uint32_t>(header.data() + header_layout::rows);
  const auto dim = load_le<std::uint32_t>(header.data() + header_layout::dim);
  const bool is_wide = header[header_layout::dtype] == std::byte{1};
  const std::uint64_t payload = std::uint64_t{rows} * (std::uint64_t{dim} * (is_wide ? 4 : 2));
  store_le(header.data() + header_layout::payload_bytes, payload);
  store_le(header.data() + header_layout::raw_bytes, payload);
  try_forged(header);
  return 0;
}
