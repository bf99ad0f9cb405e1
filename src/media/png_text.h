// The texts of a PNG, of which two may tell which way is up.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrove {

class PngText {
 public:
  PngText() = default;
  // A chunk that is no text has no keyword.
  PngText(std::string_view type, std::span<const std::byte> data);

  std::string_view keyword() const { return keyword_; }

  // As much of the text as is wanted of any: the first 256 KiB. What cannot be inflated ends there.
  std::string read() const;

 private:
  std::string_view keyword_;
  std::string_view content_;
  bool is_compressed_ = false;
};

// What ImageMagick wrote before there was a chunk for EXIF: a name, a length, and digits.
std::vector<std::byte> raw_profile(std::string_view text);

}  // namespace vitrove
