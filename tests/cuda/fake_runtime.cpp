// Stands in for libcudart.so: remembers what is registered, and fails when told to.
#include <cstddef>
#include <map>

namespace {
std::map<void*, std::size_t>& registered() {
  static std::map<void*, std::size_t> memory;
  return memory;
}
int next_error = 0;
}  // namespace

extern "C" {

[[gnu::visibility("default")]] int cudaHostRegister(void* memory, std::size_t bytes,
                                                    unsigned flags) {
  if (next_error != 0) return next_error;
  if (flags != 1) return 1;  // portable, and nothing else
  return registered().emplace(memory, bytes).second ? 0 : 712;
}

[[gnu::visibility("default")]] int cudaHostUnregister(void* memory) {
  return registered().erase(memory) == 1 ? 0 : 713;
}

[[gnu::visibility("default")]] const char* cudaGetErrorString(int error) {
  return error == 2 ? "out of memory" : "unknown";
}

// For the test.
[[gnu::visibility("default")]] std::size_t fake_cuda_bytes(void* memory) {
  const auto found = registered().find(memory);
  return found == registered().end() ? 0 : found->second;
}
[[gnu::visibility("default")]] void fake_cuda_fail_with(int error) { next_error = error; }
}
