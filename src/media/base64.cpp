#include "media/base64.h"

#include <array>
#include <cstdint>

namespace vitrove {
namespace {

constexpr std::uint8_t blank = 64;
constexpr std::uint8_t pad = 65;
constexpr std::uint8_t bad = 66;

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::uint8_t, 256> classes = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(bad);
  for (std::size_t i = 0; i < alphabet.size(); ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  for (const char c : {' ', '\t', '\n', '\r', '\f'}) table[static_cast<unsigned char>(c)] = blank;
  table['='] = pad;
  return table;
}();

// The bits of one character in its place within 24; anything outside the alphabet sets the top
// bit. Four look-ups and three ORs make three bytes.
constexpr std::uint32_t not_plain = std::uint32_t{1} << 31;
constexpr std::array<std::array<std::uint32_t, 256>, 4> placed = [] {
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::size_t place = 0; place < 4; ++place) {
    for (std::size_t c = 0; c < 256; ++c) {
      const std::uint32_t value = classes[c];
      table[place][c] = value < 64 ? value << (18 - 6 * place) : not_plain;
    }
  }
  return table;
}();

class Decoder {
 public:
  explicit Decoder(std::string_view text) : text_(text), out_(max_decoded_size(text.size())) {}

  std::optional<std::vector<std::byte>> run() {
    while (at_ < text_.size()) {
      if (held_ == 0) take_plain_quads();
      if (at_ < text_.size() && !take_character()) return std::nullopt;
    }
    if (!finish()) return std::nullopt;
    out_.resize(size_);
    return std::move(out_);
  }

 private:
  static std::uint8_t byte(char c) { return static_cast<std::uint8_t>(c); }

  // As far as there are four characters of the alphabet in a row.
  void take_plain_quads() {
    const char* from = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    std::byte* to = out_.data() + size_;
    for (; end - from >= 4; from += 4, to += 3) {
      const std::uint32_t bits = placed[0][byte(from[0])] | placed[1][byte(from[1])] |
                                 placed[2][byte(from[2])] | placed[3][byte(from[3])];
      if ((bits & not_plain) != 0) break;
      to[0] = static_cast<std::byte>(bits >> 16);
      to[1] = static_cast<std::byte>(bits >> 8);
      to[2] = static_cast<std::byte>(bits);
    }
    at_ = static_cast<std::size_t>(from - text_.data());
    size_ = static_cast<std::size_t>(to - out_.data());
  }

  bool take_character() {
    const std::uint8_t kind = classes[byte(text_[at_++])];
    if (kind == blank) return true;
    if (kind == bad) return false;
    if (kind == pad) return ++pads_ <= 2;
    if (pads_ != 0) return false;
    bits_ = bits_ << 6 | kind;
    if (++held_ < 4) return true;
    put(bits_ >> 16);
    put(bits_ >> 8);
    put(bits_);
    held_ = 0;
    bits_ = 0;
    return true;
  }

  // What is left when the text ends: 0, 2 or 3 characters.
  bool finish() {
    if (pads_ != 0 && held_ + pads_ != 4) return false;
    if (held_ == 1) return false;
    if (held_ == 2) {
      put(bits_ >> 4);
      return (bits_ & 0xf) == 0;
    }
    if (held_ == 3) {
      put(bits_ >> 10);
      put(bits_ >> 2);
      return (bits_ & 0x3) == 0;
    }
    return true;
  }

  void put(std::uint32_t value) { out_[size_++] = static_cast<std::byte>(value); }

  std::string_view text_;
  std::vector<std::byte> out_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;
  std::uint32_t bits_ = 0;
  unsigned held_ = 0;  // characters in bits_
  unsigned pads_ = 0;
};

}  // namespace

std::optional<std::vector<std::byte>> decode_base64(std::string_view text) {
  return Decoder(text).run();
}

}  // namespace vitrove
