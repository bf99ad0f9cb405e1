// The instruction set the whole build is for: SSE2 on x86-64, NEON on arm64, plain C elsewhere.
#include "identity/checksum_kernel.inc"

namespace vitrove::checksum {

const Kernel* baseline_kernel() {
  static const Kernel kernel{"baseline", reset, update, digest, hash64, scan};
  return &kernel;
}

}  // namespace vitrove::checksum
