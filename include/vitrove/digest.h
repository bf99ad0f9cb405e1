// SHA-256, the only digest that names things.
//
// `sha256()` and `Sha256` run on OpenSSL's EVP (SHA extensions where the CPU has them). `sha256()`
// reuses one context per thread, since making a context costs more than hashing a small item.
// XXH3, used for checksums, is in value_format.h: a checksum finds damage, it never names.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vitrove {

struct Digest256 {
  std::array<std::byte, 32> bytes{};
  auto operator<=>(const Digest256&) const = default;
};

// Lower-case hexadecimal.
std::string to_hex(std::span<const std::byte> bytes);
inline std::string to_hex(const Digest256& digest) { return to_hex(std::span(digest.bytes)); }

// Exactly 64 hex digits of either case, else nothing.
std::optional<Digest256> parse_digest(std::string_view hex);

Digest256 sha256(std::span<const std::byte> bytes);
Digest256 sha256(std::string_view text);

// Incremental form. Not thread-safe; movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  // Ends the message and starts a new one.
  Digest256 finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Uniform already: the first eight bytes are the hash.
struct DigestHash {
  std::size_t operator()(const Digest256& digest) const noexcept {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, digest.bytes.data(), sizeof word);
    return static_cast<std::size_t>(word);
  }
};

}  // namespace vitrove

template <>
struct std::hash<vitrove::Digest256> : vitrove::DigestHash {};
