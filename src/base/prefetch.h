// Starts loading a cache line that is about to be written.
#pragma once

namespace vitrove {

// The builtin fetches for reading only, unless the whole program is built for newer processors;
// then a line that another core wrote crosses twice. Processors without the instruction ignore it.
inline void prefetch_for_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace vitrove
