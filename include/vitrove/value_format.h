// Value format: what a store holds under a key (design section 4, docs/value-format.md).
//
//   [ header, 256 bytes ][ rows: rows * dim * element size ][ side data: side_bytes ]
//
// One self-describing object an entry. `parse_header` believes nothing before the header's own
// checksum holds and every field is in range, and never allocates; `check_value` compares with what
// the reader expects; `PayloadChecksum` runs over rows, then side data. Whatever is odd is a miss,
// a counter (`to_string(Reject)` is the metric's reason) and a value to be replaced (field cases
// B19, B26, B45, B56, B86). All integers little-endian. Thread-safe, no state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "vitrove/digest.h"
#include "vitrove/embedding_key.h"
#include "vitrove/types.h"

namespace vitrove {

constexpr std::size_t value_header_size = 256;
constexpr std::uint16_t value_format_version = 1;

enum class ValueKind : std::uint8_t { embedding = 1, alias = 2 };

struct ValueHeader {
  ValueKind kind = ValueKind::embedding;
  EmbeddingKey key;
  Digest256 model_fingerprint;
  Digest256 tenant;  // tenant_digest()
  Modality modality = Modality::image;
  DType dtype = DType::float32;
  std::uint32_t rows = 0;
  std::uint32_t dim = 0;
  std::uint32_t side_bytes = 0;
  std::uint64_t created_us = 0;      // microseconds since the Unix epoch
  std::uint64_t encode_cost_us = 0;  // what a hit saves
  std::array<std::byte, 16> payload_checksum{};

  // Exact for every header that parse_header let pass; others may overflow.
  std::uint64_t row_bytes() const { return std::uint64_t{dim} * element_size(dtype); }
  std::uint64_t payload_bytes() const { return rows * row_bytes(); }
  std::uint64_t value_bytes() const { return value_header_size + payload_bytes() + side_bytes; }
  bool operator==(const ValueHeader&) const = default;
};

// Why a value was not believed. `none` is good.
enum class Reject : std::uint8_t {
  none,
  truncated,  // shorter than a header
  magic,
  version,  // needs a newer reader, or is older than we read
  header_checksum,
  reserved,  // bytes that must be zero are not
  range,     // a field outside its range, or an unknown kind, dtype, codec, algorithm
  size,      // header and object size disagree
  key,
  model,
  tenant,
  shape,  // modality, dtype, dim or rows differ from what the request needs
  payload_checksum,
  side_data,
  not_finite,  // NaN or infinity in the rows
};
std::string_view to_string(Reject reason);

using HeaderBytes = std::array<std::byte, value_header_size>;

// Fills in magic, versions, the redundant sizes and the header checksum. The reserve is zero.
// Throws Error{internal} for a header that parse_header would refuse as out of range: an embedding
// without rows or dim, an alias with rows or without room for its target, too much side data.
HeaderBytes encode_header(const ValueHeader& header);

// `object_bytes` is the size of the whole stored object. On Reject::none `out` is complete.
Reject parse_header(std::span<const std::byte> bytes, std::uint64_t object_bytes, ValueHeader& out);

// What a reader needs a value to be. Of an alias, which has no rows, only key, model, tenant and
// modality are compared.
struct ValueExpectation {
  EmbeddingKey key;
  Digest256 model_fingerprint;
  Digest256 tenant;
  Modality modality = Modality::image;
  DType dtype = DType::float32;
  std::uint32_t dim = 0;
  std::optional<std::uint32_t> rows;  // when the request knows its token count
};

Reject check_value(const ValueHeader& header, const ValueExpectation& expected);

// XXH3-128 over rows and then side data, in as many pieces as there are. The fastest code path of
// the CPU (AVX-512, AVX2, SSE2, NEON) is chosen once at run time. Not thread-safe.
class PayloadChecksum {
 public:
  PayloadChecksum();
  ~PayloadChecksum();
  PayloadChecksum(PayloadChecksum&&) noexcept;
  PayloadChecksum& operator=(PayloadChecksum&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // Canonical (big-endian) XXH128 form. Starts anew.
  std::array<std::byte, 16> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// True when every element is finite. Takes whole elements at any alignment.
bool all_finite(std::span<const std::byte> rows, DType dtype);

}  // namespace vitrove
