// TIFF files through decode_image().
#include "fuzz/media_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  fuzz::decode_or_refuse(fuzz::as_bytes(data, size), MediaFormat::tiff);
  return 0;
}
