#include "media/xmp.h"

namespace vitrove {

std::optional<Orientation> xmp_orientation(std::string_view packet) {
  constexpr std::string_view name = "tiff:Orientation";
  for (std::size_t at = packet.find(name); at != packet.npos; at = packet.find(name, at)) {
    at += name.size();
    std::string_view rest = packet.substr(at);
    const std::size_t mark = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (mark == 0 || rest.size() == mark) continue;
    const char digit = rest[mark];
    if (digit < '0' || digit > '9') continue;
    if (digit < '1' || digit > '8') return Orientation::upright;
    return static_cast<Orientation>(digit - '0');
  }
  return std::nullopt;
}

}  // namespace vitrove
