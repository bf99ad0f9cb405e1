// The boxes that MP4, QuickTime, HEIC and AVIF files are made of, and numbers in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vitrove {

// Big-endian; zero where the bytes are not there.
inline std::uint64_t read_be(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  if (at > bytes.size() || bytes.size() - at < size) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  }
  return value;
}

// Takes numbers off the front; zeros once nothing is left.
class BoxReader {
 public:
  explicit BoxReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::uint64_t take(std::size_t size) {
    const std::uint64_t value = read_be(rest_, 0, size);
    skip(size);
    return value;
  }
  void skip(std::size_t size) { rest_ = rest_.subspan(std::min(size, rest_.size())); }
  bool is_empty() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

struct IsoBox {
  std::string_view type;
  std::span<const std::byte> body;
  bool is_cut = false;  // it says that it is longer
};

// Takes the next box off `rest`; one that is longer than what is there ends there.
inline std::optional<IsoBox> take_box(std::span<const std::byte>& rest) {
  if (rest.size() < 8) return std::nullopt;
  std::uint64_t size = read_be(rest, 0, 4);
  std::size_t header = 8;
  if (size == 1 && rest.size() >= 16) {
    size = read_be(rest, 8, 8);
    header = 16;
  }
  if (size < header) size = rest.size();
  const auto whole = rest.first(std::min<std::uint64_t>(size, rest.size()));
  const std::string_view type(reinterpret_cast<const char*>(rest.data()) + 4, 4);
  rest = rest.subspan(whole.size());
  return IsoBox{type, whole.subspan(std::min(header, whole.size())), size > whole.size()};
}

}  // namespace vitrove
