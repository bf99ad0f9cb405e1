#include "identity/checksum_dispatch.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace checksum {

std::vector<const Kernel*> usable_kernels() {
  std::vector<const Kernel*> kernels;
  const auto add = [&kernels](const Kernel* kernel) {
    if (kernel != nullptr) kernels.push_back(kernel);
  };
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) add(avx512_kernel());
  if (__builtin_cpu_supports("avx2")) add(avx2_kernel());
#endif
  add(baseline_kernel());
  return kernels;
}

const Kernel& best_kernel() {
  static const Kernel& best = *usable_kernels().front();
  return best;
}

}  // namespace checksum

struct PayloadChecksum::State {
  const checksum::Kernel& kernel = checksum::best_kernel();
  alignas(checksum::state_alignment) std::array<std::byte, checksum::state_size> memory;
};

PayloadChecksum::PayloadChecksum() : state_(std::make_unique<State>()) {
  state_->kernel.reset(state_->memory.data());
}
PayloadChecksum::~PayloadChecksum() = default;
PayloadChecksum::PayloadChecksum(PayloadChecksum&&) noexcept = default;
PayloadChecksum& PayloadChecksum::operator=(PayloadChecksum&&) noexcept = default;

void PayloadChecksum::update(std::span<const std::byte> bytes) {
  state_->kernel.update(state_->memory.data(), bytes.data(), bytes.size());
}

std::array<std::byte, 16> PayloadChecksum::finish() {
  std::array<std::byte, 16> result;
  state_->kernel.digest(state_->memory.data(), reinterpret_cast<unsigned char*>(result.data()));
  state_->kernel.reset(state_->memory.data());
  return result;
}

}  // namespace vitrove
