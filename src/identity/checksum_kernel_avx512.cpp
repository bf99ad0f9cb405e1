// Compiled with -mavx512f where the compiler knows it.
#include "identity/checksum_kernel.inc"

namespace vitrove::checksum {

#if defined(__AVX512F__)
const Kernel* avx512_kernel() {
  static const Kernel kernel{"avx512", reset, update, digest, hash64, scan};
  return &kernel;
}
#else
const Kernel* avx512_kernel() { return nullptr; }
#endif

}  // namespace vitrove::checksum
