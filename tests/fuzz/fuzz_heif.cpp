// AVIF and HEIC files through decode_image(): what we look through ourselves, and libheif where it
// is installed.
#include "fuzz/media_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  const auto bytes = fuzz::as_bytes(data, size);
  fuzz::decode_or_refuse(bytes, MediaFormat::avif);
  fuzz::decode_or_refuse(bytes, MediaFormat::heic);
  return 0;
}
