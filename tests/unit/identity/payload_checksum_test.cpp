#include <random>

#include <gtest/gtest.h>

#include "identity/checksum_dispatch.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace {

std::vector<std::byte> random_bytes(std::size_t length) {
  std::mt19937_64 random(42);
  std::vector<std::byte> bytes(length);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::string checksum_of(std::span<const std::byte> bytes) {
  PayloadChecksum checksum;
  checksum.update(bytes);
  return to_hex(checksum.finish());
}

// A kernel with a state of its own, fed piece by piece.
class KernelRun {
 public:
  explicit KernelRun(const checksum::Kernel& kernel) : kernel_(kernel) {
    kernel_.reset(state_.data());
  }
  void update(std::span<const std::byte> bytes) {
    kernel_.update(state_.data(), bytes.data(), bytes.size());
  }
  std::string finish() {
    std::array<unsigned char, 16> result;
    kernel_.digest(state_.data(), result.data());
    return to_hex(std::as_bytes(std::span(result)));
  }

 private:
  const checksum::Kernel& kernel_;
  alignas(checksum::state_alignment) std::array<std::byte, checksum::state_size> state_;
};

TEST(PayloadChecksum, GivesTheValuesThatXxhsumGives) {
  EXPECT_EQ(checksum_of({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(checksum_of(std::as_bytes(std::span("abc", 3))), "06b05ab6733a618578af5f94892f3950");
}

TEST(PayloadChecksum, DoesNotDependOnHowTheBytesAreCut) {
  const auto bytes = random_bytes(300'000);
  const std::string whole = checksum_of(bytes);
  std::mt19937 random(5);
  for (const std::size_t longest : {1, 7, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 70'000}) {
    PayloadChecksum checksum;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t length = std::min(bytes.size() - at, random() % longest + 1);
      checksum.update(std::span(bytes).subspan(at, length));
      checksum.update({});
      at += length;
    }
    EXPECT_EQ(to_hex(checksum.finish()), whole) << longest;
  }
}

TEST(PayloadChecksum, StartsAnewAfterFinish) {
  const auto bytes = random_bytes(1000);
  PayloadChecksum checksum;
  checksum.update(bytes);
  const auto first = checksum.finish();
  EXPECT_EQ(to_hex(checksum.finish()), checksum_of({}));
  checksum.update(bytes);
  EXPECT_EQ(checksum.finish(), first);
}

TEST(PayloadChecksum, MovesWithItsState) {
  const auto bytes = random_bytes(1000);
  PayloadChecksum first;
  first.update(std::span(bytes).first(333));
  PayloadChecksum second = std::move(first);
  second.update(std::span(bytes).subspan(333));
  EXPECT_EQ(to_hex(second.finish()), checksum_of(bytes));
}

TEST(PayloadChecksum, SeesASwapOfRowsAndOfRowsWithSideData) {
  auto bytes = random_bytes(4096);
  const std::string before = checksum_of(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
  EXPECT_NE(checksum_of(bytes), before);
}

TEST(ChecksumKernels, AreUsedFastestFirst) {
  const auto kernels = checksum::usable_kernels();
  ASSERT_FALSE(kernels.empty());
  EXPECT_EQ(&checksum::best_kernel(), kernels.front());
  EXPECT_EQ(kernels.back(), checksum::baseline_kernel());
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2");
  const bool has_avx512 = __builtin_cpu_supports("avx512f");
  EXPECT_EQ(kernels.size(), 1U + has_avx2 + has_avx512);
#endif
}

TEST(ChecksumKernels, AgreeOnEveryLength) {
  const auto bytes = random_bytes(3000 + 64);
  for (std::size_t length = 0; length <= 3000; ++length) {
    // From odd addresses too.
    const auto piece = std::span(bytes).subspan(length % 64, length);
    const std::string expected = checksum_of(piece);
    for (const checksum::Kernel* kernel : checksum::usable_kernels()) {
      KernelRun run(*kernel);
      run.update(piece);
      ASSERT_EQ(run.finish(), expected) << kernel->name << " " << length;
    }
  }
}

TEST(ChecksumKernels, AgreeOnPiecesOfOddSizes) {
  const auto bytes = random_bytes(200'000);
  const std::string expected = checksum_of(bytes);
  for (const checksum::Kernel* kernel : checksum::usable_kernels()) {
    for (const std::size_t length : {1, 3, 255, 257, 1021, 1024, 65'537}) {
      KernelRun run(*kernel);
      for (std::size_t at = 0; at < bytes.size(); at += length) {
        run.update(std::span(bytes).subspan(at, std::min(length, bytes.size() - at)));
      }
      EXPECT_EQ(run.finish(), expected) << kernel->name << " " << length;
    }
  }
}

TEST(ChecksumKernels, AgreeOnThe64BitForm) {
  const auto bytes = random_bytes(1000);
  const auto& baseline = *checksum::baseline_kernel();
  EXPECT_EQ(baseline.hash64(bytes.data(), 0), 0x2d06800538d394c2U);
  for (const checksum::Kernel* kernel : checksum::usable_kernels()) {
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
      ASSERT_EQ(kernel->hash64(bytes.data(), length), baseline.hash64(bytes.data(), length))
          << kernel->name << " " << length;
    }
  }
}

}  // namespace
}  // namespace vitrove
