#include "unit/mooncake/copied_bytes.h"

#include <atomic>

namespace vitrove::testing {
namespace {

// No locks and no functions of others: these are called before main(), and from anywhere.
std::atomic<std::uintptr_t> begin_of_watched{0};
std::atomic<std::uintptr_t> end_of_watched{0};
std::atomic<std::uint64_t> copied_out{0};
std::atomic<std::uint64_t> copied_in{0};

bool is_watched(const void* place) {
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  return at >= begin_of_watched.load(std::memory_order_relaxed) &&
         at < end_of_watched.load(std::memory_order_relaxed);
}

void note_copy(const void* target, const void* source, std::size_t bytes) {
  if (is_watched(source)) copied_out.fetch_add(bytes, std::memory_order_relaxed);
  if (is_watched(target)) copied_in.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

CopiedBytes::CopiedBytes(std::span<const std::byte> memory) {
  copied_out = 0;
  copied_in = 0;
  begin_of_watched = reinterpret_cast<std::uintptr_t>(memory.data());
  end_of_watched = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size());
}

CopiedBytes::~CopiedBytes() { end_of_watched = 0; }

std::uint64_t CopiedBytes::out_of_it() const { return copied_out; }
std::uint64_t CopiedBytes::into_it() const { return copied_in; }

}  // namespace vitrove::testing

// The linker sends calls of the library here (--wrap in tests/CMakeLists.txt), and those of here to
// the real functions, or to a sanitizer's.
extern "C" {

void* real_memcpy(void* target, const void* source, std::size_t bytes) asm("__real_memcpy");
void* real_memmove(void* target, const void* source, std::size_t bytes) asm("__real_memmove");
void* seen_memcpy(void* target, const void* source, std::size_t bytes) asm("__wrap_memcpy");
void* seen_memmove(void* target, const void* source, std::size_t bytes) asm("__wrap_memmove");

void* seen_memcpy(void* target, const void* source, std::size_t bytes) {
  vitrove::testing::note_copy(target, source, bytes);
  return real_memcpy(target, source, bytes);
}
void* seen_memmove(void* target, const void* source, std::size_t bytes) {
  vitrove::testing::note_copy(target, source, bytes);
  return real_memmove(target, source, bytes);
}

}  // extern "C"
