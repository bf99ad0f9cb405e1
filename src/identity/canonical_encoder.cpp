#include "identity/canonical_encoder.h"

#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "base/little_endian.h"
#include "vitrove/error.h"

namespace vitrove {

void CanonicalEncoder::head(char tag, std::uint64_t number) {
  std::array<std::byte, 8> encoded;
  store_le(encoded.data(), number);
  out_.push_back(tag);
  for (const std::byte byte : encoded) out_.push_back(static_cast<char>(byte));
}

void CanonicalEncoder::boolean(bool value) {
  out_.push_back('b');
  out_.push_back(value ? '\1' : '\0');
}

void CanonicalEncoder::natural(std::uint64_t value) { head('u', value); }

void CanonicalEncoder::integer(std::int64_t value) { head('i', static_cast<std::uint64_t>(value)); }

void CanonicalEncoder::real(double value) {
  if (std::isnan(value)) {
    throw Error(ErrorCode::invalid_argument, "a preprocessing parameter is not a number");
  }
  const double plain = value == 0 ? 0.0 : value;
  head('f', std::bit_cast<std::uint64_t>(plain));
}

void CanonicalEncoder::text(std::string_view value) {
  head('s', value.size());
  out_.append(value);
}

void CanonicalEncoder::bytes_head(std::uint64_t length) { head('y', length); }

void CanonicalEncoder::digest(const Digest256& value) {
  bytes_head(value.bytes.size());
  for (const std::byte byte : value.bytes) out_.push_back(static_cast<char>(byte));
}

void CanonicalEncoder::list_head(std::uint64_t items) { head('l', items); }

void CanonicalEncoder::map_head(std::uint64_t pairs) { head('m', pairs); }

void CanonicalEncoder::value(const ParamValue& value) {
  std::visit(
      [this](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          boolean(held);
        } else if constexpr (std::is_same_v<Held, std::int64_t>) {
          integer(held);
        } else if constexpr (std::is_same_v<Held, double>) {
          real(held);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          text(held);
        } else {
          list_head(held.size());
          for (const double item : held) real(item);
        }
      },
      value);
}

void CanonicalEncoder::params(const ResolvedParams& params) {
  map_head(params.values.size());
  for (const auto& [name, held] : params.values) {
    text(name);
    value(held);
  }
}

}  // namespace vitrove
