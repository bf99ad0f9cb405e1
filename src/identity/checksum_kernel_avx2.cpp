// Compiled with -mavx2 where the compiler knows it.
#include "identity/checksum_kernel.inc"

namespace vitrove::checksum {

#if defined(__AVX2__)
const Kernel* avx2_kernel() {
  static const Kernel kernel{"avx2", reset, update, digest, hash64, scan};
  return &kernel;
}
#else
const Kernel* avx2_kernel() { return nullptr; }
#endif

}  // namespace vitrove::checksum
