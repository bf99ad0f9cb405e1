// Sounds in every container through decode_audio().
#include "fuzz/media_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  fuzz::decode_sound_or_refuse(fuzz::as_bytes(data, size));
  return 0;
}
