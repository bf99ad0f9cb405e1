// The rows of Mooncake through a C library in the table "Copies in user space" of
// docs/performance.md: one copy, between the value's runs and the staging memory that the helper
// maps; there the library works itself, and nobody in between.
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "unit/mooncake/copied_bytes.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/waiting.h"
#include "vitrove/page_pool.h"

namespace vitrove::testing {
namespace {

constexpr std::size_t run_bytes = 256 << 10;
constexpr std::size_t value_bytes = 5 * run_bytes;

class LibraryCopies : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.tell_moves();
    store_->register_shared_buffer(pool_.arena(), pool_.memfd());
    ASSERT_TRUE(eventually([&] { return store_->health().state == StoreState::ready; }))
        << store_->health().detail;
  }
  void TearDown() override { store_->unregister_buffer(pool_.arena()); }

  // A put and a get as the cache makes them: of a small piece and several runs, with gaps.
  void check_one_copy(MutableBuffer memory) {
    const EmbeddingKey key = key_number(1);
    const Bytes value = pattern(3, value_bytes);
    std::vector<MutableBuffer> runs;
    std::size_t taken = 0;
    for (const std::size_t size : {std::size_t{256}, run_bytes, value_bytes - run_bytes - 256}) {
      runs.push_back(memory.subspan(taken + 4096 * runs.size(), size));
      std::ranges::copy(std::span(value).subspan(taken, size), runs.back().begin());
      taken += size;
    }
    const std::vector<ConstBuffer> pieces(runs.begin(), runs.end());
    const ConstBufferList puts(pieces);
    const MutableBufferList gets(runs);
    {
      const CopiedBytes copied(memory);
      EXPECT_TRUE(
          store_->batch_put_from_multi_buffers({&key, 1}, {&puts, 1}, PutMode::if_absent, {})
              .front()
              .ok());
      EXPECT_EQ(copied.out_of_it(), value_bytes) << "into staging memory";
      EXPECT_EQ(copied.into_it(), 0u);
    }
    EXPECT_EQ(cluster_.moves(), in_staging("put"));
    for (const MutableBuffer run : runs) std::ranges::fill(run, std::byte{0});
    {
      const CopiedBytes copied(memory);
      EXPECT_TRUE(store_->batch_get_into_multi_buffers({&key, 1}, {&gets, 1}, {}).front().ok());
      EXPECT_EQ(copied.into_it(), value_bytes) << "out of staging memory";
      EXPECT_EQ(copied.out_of_it(), 0u);
    }
    EXPECT_EQ(cluster_.moves(), in_staging("put") + in_staging("get"));
    taken = 0;
    for (const MutableBuffer run : runs) {
      EXPECT_TRUE(std::ranges::equal(run, std::span(value).subspan(taken, run.size())));
      taken += run.size();
    }
  }

  // The whole value in one piece, in the memory file that is the store's own.
  static std::string in_staging(const std::string& operation) {
    return operation + " " + std::to_string(value_bytes) + " /memfd:vitrove-mooncake\n";
  }

  FakeCluster cluster_;
  PagePool pool_{{.pool_bytes = 4 << 20}};
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(cluster_.options());
};

TEST_F(LibraryCopies, IsOneOfAValueInThePool) { check_one_copy(pool_.arena()); }

TEST_F(LibraryCopies, IsOneOfAValueInOtherMemory) {
  Bytes memory(value_bytes + 3 * 4096);
  check_one_copy(memory);
}

}  // namespace
}  // namespace vitrove::testing
