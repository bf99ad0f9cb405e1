// Which XXH3 code paths this CPU can run.
#pragma once

#include <vector>

#include "identity/checksum_kernel.h"

namespace vitrove::checksum {

// Fastest first, never empty. All give the same results.
std::vector<const Kernel*> usable_kernels();

// The first of them, chosen once.
const Kernel& best_kernel();

}  // namespace vitrove::checksum
