// EXIF blocks, as they are and as a PNG's text has them, and XMP: an orientation comes out or none,
// and nothing outside is read.
#include <string>
#include <vector>

#include "fuzz/media_fuzz.h"
#include "media/exif.h"
#include "media/png_text.h"
#include "media/xmp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  // A copy of exactly this size, so that the sanitizer sees every byte beyond.
  const std::vector<std::byte> block(fuzz::as_bytes(data, size).begin(),
                                     fuzz::as_bytes(data, size).end());
  const std::string text(fuzz::as_text(data, size));
  for (const auto found :
       {exif_orientation(block), exif_orientation(raw_profile(text)), xmp_orientation(text)}) {
    const auto orientation = static_cast<unsigned>(found.value_or(Orientation::upright));
    fuzz::check(orientation >= 1 && orientation <= 8, "one of the eight orientations");
  }
  return 0;
}
