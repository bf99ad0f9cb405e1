// Guests of a file store: who looks at it has no say in it.
#include <gmock/gmock.h>

#include "contract/test_values.h"
#include "unit/stores/file_store_directory.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove::testing {
namespace {

using ::testing::HasSubstr;

class FileStoreGuest : public FileStoreDirectory {
 protected:
  std::unique_ptr<EmbeddingStore> visit(std::uint64_t capacity = mib) const {
    return make_file_store({.root = root(), .capacity = capacity, .guest = true});
  }
  void fill(std::size_t count) const {
    const auto store = open(64 * mib);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(put_one(*store, key_number(i), pattern(i, 100'000)).ok());
  }
  std::string refusal() const {
    try {
      visit();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      return error.what();
    }
    return "no error";
  }
  std::string state_text() const {
    std::ifstream in(state_path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(FileStoreGuest, EvictsNothingAndSignsInNowhereThoughItsCapacityIsSmall) {
  fill(40);
  const std::string before = state_text();
  {
    const auto guest = visit();
    EXPECT_EQ(read_back(*guest, key_number(1)), pattern(1, 100'000));
    std::size_t seen = 0;
    const auto count = [&](const ListedValue&) { return ++seen > 0; };
    EXPECT_TRUE(guest->list({.with_header = true}, count, {}).ok());
    EXPECT_EQ(seen, 40u);
    ASSERT_TRUE(put_one(*guest, key_number(99), pattern(99, 1000)).ok());
    EXPECT_TRUE(guest->batch_remove(std::vector{key_number(99)}, {}).front().ok());
  }
  EXPECT_EQ(count_values(), 40u);
  EXPECT_EQ(state_text(), before);
}

TEST_F(FileStoreGuest, DoesNotUseWhatItReads) {
  fill(1);
  make_old(path_of(key_number(0)), 3600s);
  const auto before = fs::last_write_time(path_of(key_number(0)));
  EXPECT_EQ(read_back(*visit(), key_number(0)), pattern(0, 100'000));
  EXPECT_EQ(fs::last_write_time(path_of(key_number(0))), before);
  EXPECT_EQ(read_back(*open(64 * mib), key_number(0)), pattern(0, 100'000));
  EXPECT_GT(fs::last_write_time(path_of(key_number(0))), before);
}

TEST_F(FileStoreGuest, PutsOneMebibyteInAllAndClaimsNothing) {
  fill(1);
  const auto guest = visit();
  std::size_t good = 0;
  StoreResult last;
  for (std::size_t i = 1; i <= 16; ++i) {
    last = put_one(*guest, key_number(i), pattern(i, 100'000));
    good += last.ok() ? 1 : 0;
  }
  EXPECT_GT(good, 5u);
  EXPECT_LT(good, 11u);
  EXPECT_EQ(last.status, StoreStatus::no_space);
  ClaimToken token;
  EXPECT_FALSE(guest->capabilities().can_claim);
  EXPECT_EQ(guest->claim(key_number(50), 1s, token, {}).status, StoreStatus::unsupported);
}

TEST_F(FileStoreGuest, GivesItsFilesThePermissionsOfTheRoot) {
  fill(1);
  fs::permissions(root(), fs::perms(0770));
  ASSERT_TRUE(put_one(*visit(), key_number(5), pattern(5, 1000)).ok());
  EXPECT_EQ(fs::status(path_of(key_number(5))).permissions(), fs::perms(0660));
}

TEST_F(FileStoreGuest, TellsWhatTheWritersHaveWrittenDown) {
  const auto writer = open(64 * mib);
  for (std::size_t i = 0; i < 10; ++i)
    ASSERT_TRUE(put_one(*writer, key_number(i), pattern(i, 100'000)).ok());
  const auto guest = visit();
  EXPECT_EQ(guest->health().capacity, 64 * mib);
  EXPECT_EQ(guest->health().state, StoreState::ready);
  EXPECT_GE(guest->health().bytes, mib);
}

TEST_F(FileStoreGuest, IsToldThatThereIsNoStore) {
  EXPECT_THAT(refusal(), HasSubstr("the directory does not exist"));
  EXPECT_FALSE(fs::exists(root()));
  fs::create_directory(root());
  EXPECT_THAT(refusal(), HasSubstr("holds no store"));
  EXPECT_TRUE(fs::is_empty(root()));
  fs::remove(root());
  std::ofstream(root()) << "a file";
  EXPECT_THAT(refusal(), HasSubstr("it is no directory"));
}

TEST_F(FileStoreGuest, MakesNoStoreWhereOneHasVanished) {
  fill(1);
  const auto guest = visit();
  fs::remove_all(root());
  EXPECT_FALSE(put_one(*guest, key_number(2), pattern(2, 1000)).ok());
  EXPECT_FALSE(fs::exists(root()));
}

TEST_F(FileStoreGuest, IsAnOptionOfTheUrl) {
  fill(1);
  const auto factory = EmbeddingStoreFactory::with_builtins();
  const auto guest = factory.create_backend("file://" + root().string(), {{"guest", "true"}});
  EXPECT_FALSE(guest->capabilities().can_claim);
}

}  // namespace
}  // namespace vitrove::testing
