// Where the pool's memory lies, and who is told of it.
#include <algorithm>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pool/arena.h"
#include "support/paths.h"
#include "vitrove/page_pool.h"

namespace vitrove {
namespace {

bool mentions(const std::vector<std::string>& lines, const std::string& words) {
  return std::ranges::any_of(
      lines, [&](const auto& line) { return line.find(words) != std::string::npos; });
}

TEST(NumaNode, ThePoolPrefersItOrTheReasonIsGiven) {
  PagePoolOptions options;
  options.pool_bytes = 1 << 20;
  options.numa_node = 0;
  PagePool pool(options);
  pool.arena().front() = std::byte{1};
  if (!pool.warnings().empty()) {  // not every kernel or container lets us
    EXPECT_TRUE(mentions(pool.warnings(), "NUMA node 0: "));
    return;
  }
  int policy = -1;
  unsigned long mask[16] = {};
  ASSERT_EQ(
      syscall(SYS_get_mempolicy, &policy, mask, sizeof mask * 8, pool.arena().data(), MPOL_F_ADDR),
      0);
  EXPECT_EQ(policy, MPOL_PREFERRED);
  EXPECT_EQ(mask[0], 1u);
}

TEST(NumaNode, ANodeThatIsNotThereIsAWarningAndAWorkingPool) {
  for (const std::uint32_t node : {1023u, 1024u, 4000000000u}) {
    PagePoolOptions options;
    options.pool_bytes = 1 << 20;
    options.numa_node = node;
    PagePool pool(options);
    EXPECT_EQ(pool.warnings().size(), 1u);
    EXPECT_TRUE(mentions(pool.warnings(), "NUMA node " + std::to_string(node)));
    const auto runs = pool.allocate(4, 4096);
    ASSERT_TRUE(runs);
    pool.segment_bytes(runs->segments[0])[0] = std::byte{1};
    pool.release(*runs);
  }
}

std::string fake_runtime() {
  return (test::binary_dir() / "test-plugins" / "libfake_cudart.so").string();
}

ArenaOptions pinned(const std::string& library) {
  return {.bytes = 64 * 1024, .pin_memory = true, .numa_node = {}, .cuda_library = library};
}

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(fake_runtime().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override { fail_with(0); }

  std::size_t registered(void* memory) const {
    return reinterpret_cast<std::size_t (*)(void*)>(dlsym(library_, "fake_cuda_bytes"))(memory);
  }
  void fail_with(int error) const {
    reinterpret_cast<void (*)(int)>(dlsym(library_, "fake_cuda_fail_with"))(error);
  }

 private:
  void* library_ = nullptr;
};

TEST_F(CudaMemory, PinnedMemoryIsRegisteredForAsLongAsItLives) {
  void* memory = nullptr;
  {
    const Arena arena(pinned(fake_runtime()));
    memory = arena.bytes().data();
    EXPECT_GE(registered(memory), arena.bytes().size());
    EXPECT_TRUE(mentions(arena.notes(), "registered with CUDA"));
    EXPECT_FALSE(mentions(arena.warnings(), "CUDA"));
  }
  EXPECT_EQ(registered(memory), 0u);
}

TEST_F(CudaMemory, AFailureIsOneWarningWithItsReasonAndAWorkingPool) {
  fail_with(2);
  const Arena arena(pinned(fake_runtime()));
  EXPECT_TRUE(mentions(arena.warnings(), "CUDA error 2: out of memory"));
  EXPECT_EQ(registered(arena.bytes().data()), 0u);
  arena.bytes().back() = std::byte{1};
}

TEST_F(CudaMemory, WhatIsNotPinnedIsNotRegistered) {
  const Arena arena({.bytes = 64 * 1024, .numa_node = {}, .cuda_library = fake_runtime()});
  EXPECT_EQ(registered(arena.bytes().data()), 0u);
  EXPECT_TRUE(arena.notes().empty());
}

TEST_F(CudaMemory, WithoutTheLibraryItIsPlainMemoryAndSaidOnce) {
  const Arena arena(pinned("/nowhere/libcudart.so"));
  ASSERT_EQ(arena.notes().size(), 1u);
  EXPECT_TRUE(mentions(arena.notes(), "/nowhere/libcudart.so cannot be opened"));
  EXPECT_FALSE(mentions(arena.warnings(), "CUDA"));
}

TEST_F(CudaMemory, ALibraryWithoutTheFunctionsIsAWarning) {
  const Arena arena(pinned("libc.so.6"));
  EXPECT_TRUE(mentions(arena.warnings(), "has no cudaHostRegister"));
}

// B72: what is taken is what was asked for, once a pool.
TEST(PoolMemory, IsWhatWasAskedFor) {
  PagePoolOptions options;
  options.pool_bytes = 100 * options.page_bytes + 5;
  PagePool pool(options);
  EXPECT_EQ(pool.total_pages() * pool.page_bytes(), 100 * options.page_bytes);
  EXPECT_EQ(pool.arena().size(), (100 + options.staging_pages) * options.page_bytes +
                                     options.header_slots * PagePool::header_slot_bytes);
}

}  // namespace
}  // namespace vitrove
