#include "pool/cuda_registration.h"

#include <array>
#include <utility>

#include <dlfcn.h>

namespace vitrove {
namespace {

// The parts of the CUDA run-time interface that are called; they have not changed since CUDA 4.
using HostRegister = int (*)(void* memory, std::size_t bytes, unsigned flags);
using HostUnregister = int (*)(void* memory);
using GetErrorString = const char* (*)(int error);
constexpr unsigned register_portable = 1;  // for all devices, not only the present one

constexpr std::array usual_names = {"libcudart.so", "libcudart.so.13", "libcudart.so.12",
                                    "libcudart.so.11.0"};

// Never unloaded: the runtime keeps threads and state until the process ends.
void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

void* open_runtime(const std::string& library) {
  if (!library.empty()) return open_library(library.c_str());
  for (const char* name : usual_names) {
    if (void* const opened = open_library(name)) return opened;
  }
  return nullptr;
}

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));  // NOLINT: what POSIX has for it
}

}  // namespace

CudaRegistration::CudaRegistration(std::span<std::byte> memory, const std::string& library) {
  void* const opened = open_runtime(library);
  if (opened == nullptr) {
    absent_ = true;
    reason_ = library.empty() ? "there is no libcudart.so" : library + " cannot be opened";
    return;
  }
  try_to_register(memory, opened);
}

void CudaRegistration::try_to_register(std::span<std::byte> memory, void* library) {
  const auto host_register = find<HostRegister>(library, "cudaHostRegister");
  const auto host_unregister = find<HostUnregister>(library, "cudaHostUnregister");
  if (host_register == nullptr || host_unregister == nullptr) {
    reason_ = "the library has no cudaHostRegister";
    return;
  }
  const int error = host_register(memory.data(), memory.size(), register_portable);
  if (error == 0) {
    memory_ = memory.data();
    unregister_ = host_unregister;
    return;
  }
  reason_ = "CUDA error " + std::to_string(error);
  if (const auto describe = find<GetErrorString>(library, "cudaGetErrorString")) {
    reason_ += std::string(": ") + describe(error);
  }
}

CudaRegistration::~CudaRegistration() {
  if (unregister_ != nullptr) unregister_(memory_);
}

CudaRegistration::CudaRegistration(CudaRegistration&& other) noexcept
    : memory_(other.memory_),
      unregister_(std::exchange(other.unregister_, nullptr)),
      absent_(other.absent_),
      reason_(std::move(other.reason_)) {}

CudaRegistration& CudaRegistration::operator=(CudaRegistration&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(unregister_, other.unregister_);
  std::swap(absent_, other.absent_);
  std::swap(reason_, other.reason_);
  return *this;
}

}  // namespace vitrove
