// Memory that runs out for one thread, as if the machine had none: every `new` on it throws.
#pragma once

namespace vitrove::test {

void fail_allocations_of_this_thread(bool fail);

}  // namespace vitrove::test
