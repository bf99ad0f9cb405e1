// EXIF blocks: an orientation comes out, and nothing outside the block is read.
#include <vector>

#include "fuzz/media_fuzz.h"
#include "media/exif.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  // A copy of exactly this size, so that the sanitizer sees every byte beyond.
  const std::vector<std::byte> block(fuzz::as_bytes(data, size).begin(),
                                     fuzz::as_bytes(data, size).end());
  const auto orientation = static_cast<unsigned>(read_orientation(block));
  fuzz::check(orientation >= 1 && orientation <= 8, "one of the eight orientations");
  return 0;
}
