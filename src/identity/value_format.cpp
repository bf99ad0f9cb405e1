#include "vitrove/value_format.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "identity/checksum_kernel.h"
#include "identity/header_layout.h"
#include "vitrove/error.h"
#include "vitrove/side_data.h"

namespace vitrove {
namespace {

namespace at = header_layout;

// What an alias carries at least: one record with the target.
constexpr std::uint32_t min_alias_side_bytes = 8 + sizeof(Digest256::bytes);

std::uint8_t load_u8(const std::byte* header, std::size_t offset) {
  return std::to_integer<std::uint8_t>(header[offset]);
}
std::uint32_t load_u32(const std::byte* header, std::size_t offset) {
  return load_le<std::uint32_t>(header + offset);
}
std::uint64_t load_u64(const std::byte* header, std::size_t offset) {
  return load_le<std::uint64_t>(header + offset);
}
template <std::size_t size>
void load_bytes(const std::byte* header, std::size_t offset, std::array<std::byte, size>& out) {
  std::memcpy(out.data(), header + offset, size);
}
template <std::size_t size>
void store_bytes(HeaderBytes& header, std::size_t offset, const std::array<std::byte, size>& in) {
  std::memcpy(header.data() + offset, in.data(), size);
}

std::uint64_t checksum_of(const std::byte* header) {
  return checksum::baseline_kernel()->hash64(header, at::header_checksum);
}

bool all_zero(const std::byte* from, std::size_t length) {
  return std::all_of(from, from + length, [](std::byte byte) { return byte == std::byte{0}; });
}

bool reserve_is_zero(const std::byte* header) {
  return all_zero(header + at::zeros_1, at::created_us - at::zeros_1) &&
         all_zero(header + at::zeros_2, at::header_checksum - at::zeros_2);
}

// A later version may fill the reserve and still say that version 1 can read it.
bool version_is_readable(std::uint16_t format, std::uint16_t min_reader) {
  return min_reader >= 1 && min_reader <= format && min_reader <= value_format_version;
}

bool is_known(ValueKind kind) { return kind == ValueKind::embedding || kind == ValueKind::alias; }
bool is_known(Modality modality) {
  return modality == Modality::image || modality == Modality::video || modality == Modality::audio;
}
bool is_known(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

// rows * dim * element size may need 66 bits, so payload_bytes() is right only after this.
bool size_fits(const ValueHeader& header) {
  std::uint64_t payload = 0;
  std::uint64_t value = 0;
  return !__builtin_mul_overflow(std::uint64_t{header.rows}, header.row_bytes(), &payload) &&
         !__builtin_add_overflow(payload, value_header_size + header.side_bytes, &value);
}

bool fields_in_range(const ValueHeader& header) {
  if (!is_known(header.kind) || !is_known(header.modality) || !is_known(header.dtype)) return false;
  if (header.side_bytes > max_side_bytes || !size_fits(header)) return false;
  if (header.kind == ValueKind::alias) {
    return header.rows == 0 && header.side_bytes >= min_alias_side_bytes;
  }
  return header.rows >= 1 && header.dim >= 1;
}

ValueHeader load_fields(const std::byte* bytes) {
  ValueHeader header;
  header.kind = static_cast<ValueKind>(load_u8(bytes, at::kind));
  header.modality = static_cast<Modality>(load_u8(bytes, at::modality));
  header.dtype = static_cast<DType>(load_u8(bytes, at::dtype));
  header.rows = load_u32(bytes, at::rows);
  header.dim = load_u32(bytes, at::dim);
  header.side_bytes = load_u32(bytes, at::side_bytes);
  header.created_us = load_u64(bytes, at::created_us);
  header.encode_cost_us = load_u64(bytes, at::encode_cost_us);
  load_bytes(bytes, at::key, header.key.digest.bytes);
  load_bytes(bytes, at::model_fingerprint, header.model_fingerprint.bytes);
  load_bytes(bytes, at::tenant, header.tenant.bytes);
  load_bytes(bytes, at::payload_checksum, header.payload_checksum);
  return header;
}

bool redundant_fields_agree(const std::byte* bytes, const ValueHeader& header) {
  return load_u8(bytes, at::codec) == at::plain_codec &&
         load_u8(bytes, at::checksum_algorithm) == at::xxh3_128_algorithm &&
         load_u64(bytes, at::payload_bytes) == header.payload_bytes() &&
         load_u64(bytes, at::raw_bytes) == header.payload_bytes();
}

}  // namespace

void header_layout::seal(HeaderBytes& header) {
  store_le(header.data() + header_checksum, checksum_of(header.data()));
}

std::string_view to_string(Reject reason) {
  switch (reason) {
    case Reject::none:
      return "none";
    case Reject::truncated:
      return "truncated";
    case Reject::magic:
      return "magic";
    case Reject::version:
      return "version";
    case Reject::header_checksum:
      return "header_checksum";
    case Reject::reserved:
      return "reserved";
    case Reject::range:
      return "range";
    case Reject::size:
      return "size";
    case Reject::key:
      return "key";
    case Reject::model:
      return "model";
    case Reject::tenant:
      return "tenant";
    case Reject::shape:
      return "shape";
    case Reject::payload_checksum:
      return "payload_checksum";
    case Reject::side_data:
      return "side_data";
    case Reject::not_finite:
      return "not_finite";
  }
  return "unknown";
}

HeaderBytes encode_header(const ValueHeader& header) {
  if (!fields_in_range(header)) {
    throw Error(ErrorCode::internal, "an embedding's header is out of range");
  }
  HeaderBytes bytes{};
  const auto put = [&bytes](std::size_t offset, auto value) {
    store_le(bytes.data() + offset, value);
  };
  std::memcpy(bytes.data() + at::magic, at::magic_text.data(), at::magic_text.size());
  put(at::format_version, value_format_version);
  put(at::min_reader_version, value_format_version);
  put(at::kind, static_cast<std::uint8_t>(header.kind));
  put(at::modality, static_cast<std::uint8_t>(header.modality));
  put(at::dtype, static_cast<std::uint8_t>(header.dtype));
  put(at::codec, at::plain_codec);
  put(at::rows, header.rows);
  put(at::dim, header.dim);
  put(at::payload_bytes, header.payload_bytes());
  put(at::raw_bytes, header.payload_bytes());
  put(at::side_bytes, header.side_bytes);
  put(at::checksum_algorithm, at::xxh3_128_algorithm);
  put(at::created_us, header.created_us);
  put(at::encode_cost_us, header.encode_cost_us);
  store_bytes(bytes, at::key, header.key.digest.bytes);
  store_bytes(bytes, at::model_fingerprint, header.model_fingerprint.bytes);
  store_bytes(bytes, at::tenant, header.tenant.bytes);
  store_bytes(bytes, at::payload_checksum, header.payload_checksum);
  header_layout::seal(bytes);
  return bytes;
}

Reject parse_header(std::span<const std::byte> bytes, std::uint64_t object_bytes,
                    ValueHeader& out) {
  if (bytes.size() < value_header_size || object_bytes < value_header_size) {
    return Reject::truncated;
  }
  const std::byte* const raw = bytes.data();
  if (std::memcmp(raw + at::magic, at::magic_text.data(), at::magic_text.size()) != 0) {
    return Reject::magic;
  }
  const auto format = load_le<std::uint16_t>(raw + at::format_version);
  const auto min_reader = load_le<std::uint16_t>(raw + at::min_reader_version);
  if (!version_is_readable(format, min_reader)) return Reject::version;
  if (load_u64(raw, at::header_checksum) != checksum_of(raw)) return Reject::header_checksum;
  if (format == value_format_version && !reserve_is_zero(raw)) return Reject::reserved;

  const ValueHeader header = load_fields(raw);
  if (!fields_in_range(header) || !redundant_fields_agree(raw, header)) return Reject::range;
  if (header.value_bytes() != object_bytes) return Reject::size;
  out = header;
  return Reject::none;
}

Reject check_value(const ValueHeader& header, const ValueExpectation& expected) {
  if (header.key != expected.key) return Reject::key;
  if (header.model_fingerprint != expected.model_fingerprint) return Reject::model;
  if (header.tenant != expected.tenant) return Reject::tenant;
  if (header.modality != expected.modality) return Reject::shape;
  if (header.kind == ValueKind::alias) return Reject::none;  // no rows to have a shape
  if (header.dtype != expected.dtype || header.dim != expected.dim) return Reject::shape;
  if (expected.rows && *expected.rows != header.rows) return Reject::shape;
  return Reject::none;
}

}  // namespace vitrove
