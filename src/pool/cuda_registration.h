// CudaRegistration: tells CUDA of memory, so that devices copy from and to it directly. The
// run-time library is opened when it is there; nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vitrove {

class CudaRegistration {
 public:
  CudaRegistration() = default;
  // `library`: empty for libcudart.so as the dynamic linker finds it.
  CudaRegistration(std::span<std::byte> memory, const std::string& library);
  ~CudaRegistration();
  CudaRegistration(CudaRegistration&& other) noexcept;
  CudaRegistration& operator=(CudaRegistration&& other) noexcept;

  bool is_registered() const { return unregister_ != nullptr; }
  // True when there is no library: then there is nothing to register with.
  bool is_absent() const { return absent_; }
  // Why it is not registered.
  const std::string& reason() const { return reason_; }

 private:
  void try_to_register(std::span<std::byte> memory, void* library);

  void* memory_ = nullptr;
  int (*unregister_)(void*) = nullptr;
  bool absent_ = false;
  std::string reason_;
};

}  // namespace vitrove
