// Clips in every container through decode_video().
#include "fuzz/media_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  fuzz::decode_clip_or_refuse(fuzz::as_bytes(data, size));
  return 0;
}
