#include "media/container_end.h"

#include <cstdint>

#include "media/decode_job.h"
#include "media/ebml.h"
#include "media/iso_boxes.h"

namespace vitrove {

void check_matroska_end(std::span<const std::byte> file) {
  constexpr std::uint64_t segment = 0x18538067;
  // Where no element begins, the demuxer will say so.
  while (const auto element = take_element(file)) {
    if (!element->size) return;
    if (*element->size > element->body.size()) {
      throw_damaged(MediaFormat::webm, "shorter than it says");
    }
    if (element->id == segment) return;
  }
}

bool is_iso_cut(std::span<const std::byte> file) {
  while (const auto box = take_box(file)) {
    if (box->is_cut) return true;
  }
  return false;
}

}  // namespace vitrove
