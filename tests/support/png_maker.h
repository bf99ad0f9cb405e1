// Small PNG files made in place: uncompressed, so that no library is needed to write them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrove::test {

using Bytes = std::vector<std::byte>;

inline std::uint32_t crc32_of(std::string_view text) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

inline std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + body + big_endian(crc32_of(body));
}

// A zlib stream of stored blocks, each of at most `block` bytes: other sizes, same contents.
inline std::string stored_deflate(const std::string& data, std::size_t block) {
  std::string out = "\x78\x01";
  for (std::size_t at = 0; at < data.size(); at += block) {
    const auto part = data.substr(at, block);
    const auto size = static_cast<std::uint16_t>(part.size());
    out += at + block >= data.size() ? '\1' : '\0';
    for (const std::uint16_t word : {size, static_cast<std::uint16_t>(~size)}) {
      out += static_cast<char>(word & 0xff);
      out += static_cast<char>(word >> 8);
    }
    out += part;
  }
  std::uint32_t a = 1, b = 0;
  for (const char c : data) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return out + big_endian((b << 16) | a);
}

// A picture that differs for every seed. Equal pixels in other files with another `block`.
inline std::string png(std::uint32_t seed, std::uint32_t width = 28, std::uint32_t height = 28,
                       std::size_t block = 4096) {
  std::string rows;
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::uint32_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    for (std::uint32_t x = 0; x < 3 * width; ++x) {
      state = state * 1664525U + 1013904223U;
      rows += static_cast<char>(state >> 24);
    }
  }
  const std::string head =
      big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
  return std::string("\x89PNG\r\n\x1a\n") + png_chunk("IHDR", head) +
         png_chunk("IDAT", stored_deflate(rows, block)) + png_chunk("IEND", "");
}

inline Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string to_base64(std::string_view text) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::uint32_t word = 0;
    const std::size_t have = std::min<std::size_t>(3, text.size() - at);
    for (std::size_t i = 0; i < 3; ++i) {
      word = (word << 8) | (i < have ? static_cast<unsigned char>(text[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= have ? digits[(word >> (18 - 6 * i)) & 63] : '=';
    }
  }
  return out;
}

inline std::string data_url(std::string_view content) {
  return "data:image/png;base64," + to_base64(content);
}
inline std::string png_url(std::uint32_t seed) { return data_url(png(seed)); }

}  // namespace vitrove::test
