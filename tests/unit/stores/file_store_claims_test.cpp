// Claims of the file store: what the dead, the old and the broken ones cost.
#include "stores/file/claims.h"
#include "unit/stores/file_store_directory.h"

namespace vitrove::testing {
namespace {

// Another process, as far as the directory can tell.
class Process {
 public:
  Process(const fs::path& root, file::ProcessIdentity who)
      : layout_(root), maker_(layout_), self_(std::move(who)) {}

  ClaimToken claim(const EmbeddingKey& key, std::chrono::milliseconds ttl = 1h) {
    ClaimToken token;
    EXPECT_TRUE(claims_.claim(key, ttl, token).ok());
    return token;
  }
  file::Claims& claims() { return claims_; }

 private:
  file::Layout layout_;
  file::DirectoryMaker maker_;
  file::ProcessIdentity self_;
  file::TemporaryFiles temporaries_{layout_, maker_, self_};
  file::Claims claims_{layout_, temporaries_, self_};
};

class FileClaims : public FileStoreDirectory {
 protected:
  // The store's first count sweeps what the dead and the old have left: not in the middle of a
  // test.
  void SetUp() override {
    FileStoreDirectory::SetUp();
    ASSERT_TRUE(eventually([&] { return store_->health().entries.has_value(); }));
  }
  fs::path claim_path() const { return file::Layout(root()).claim_path(key_); }
  StoreStatus claim_here() {
    ClaimToken token;
    return store_->claim(key_, 1min, token, {}).status;
  }
  // A file under the claim's name that no store has written.
  void plant_claim(const std::string& text) const {
    fs::create_directories(claim_path().parent_path());
    std::ofstream(claim_path()) << text;
  }

  const EmbeddingKey key_ = key_number(1);
  const file::ProcessIdentity stranger_{"00000000deadbeef", "bbbbbbbbbbbbbbbb", 1};
  std::unique_ptr<EmbeddingStore> store_ = open(100 * mib);
};

TEST_F(FileClaims, OfTheDeadOfThisHostAreFreeAtOnce) {
  file::ProcessIdentity dead = file::make_identity();
  dead.pid = (std::int64_t{1} << 22) + 1;  // beyond any pid
  Process process(root(), dead);
  const ClaimToken theirs = process.claim(key_);
  EXPECT_EQ(claim_here(), StoreStatus::ok);
  EXPECT_EQ(claim_here(), StoreStatus::conflict);
  EXPECT_EQ(process.claims().renew(key_, theirs, 1h).status, StoreStatus::conflict);
  EXPECT_EQ(process.claims().release(key_, theirs).status, StoreStatus::conflict);
  EXPECT_EQ(claim_here(), StoreStatus::conflict) << "what the dead does late harms nobody";
}

TEST_F(FileClaims, OfOtherHostsEndWithTheirTime) {
  Process process(root(), stranger_);
  const ClaimToken theirs = process.claim(key_, 1h);
  EXPECT_EQ(claim_here(), StoreStatus::conflict);
  make_old(claim_path(), 59min);
  EXPECT_EQ(claim_here(), StoreStatus::conflict);
  make_old(claim_path(), 61min);
  EXPECT_TRUE(process.claims().renew(key_, theirs, 1h).ok()) << "nobody has taken it yet";
  EXPECT_EQ(claim_here(), StoreStatus::conflict);
  make_old(claim_path(), 61min);
  EXPECT_EQ(claim_here(), StoreStatus::ok);
  EXPECT_EQ(process.claims().renew(key_, theirs, 1h).status, StoreStatus::conflict);
}

TEST_F(FileClaims, OutOfTheFutureAreFromBeforeAClockWasSetBack) {
  Process process(root(), stranger_);
  process.claim(key_, 1min);
  make_old(claim_path(), -2h);
  EXPECT_EQ(claim_here(), StoreStatus::ok);
}

TEST_F(FileClaims, ThatCannotBeReadLastAMinute) {
  const std::string good = "vitrove-claim 1 00000000deadbeef bbbbbbbbbbbbbbbb 1 ";
  const std::vector<std::string> texts{std::string(),
                                       "no claim\n",
                                       std::string(5000, 'x'),
                                       good + "-5 0\n",
                                       good + "x 0\n",
                                       good + "000000000005 0",
                                       good + "000000000005 0 more\n",
                                       good + "000000000005\n"};
  for (const std::string& text : texts) {
    plant_claim(text);
    EXPECT_EQ(claim_here(), StoreStatus::conflict) << text;
    make_old(claim_path(), 2min);
    EXPECT_EQ(claim_here(), StoreStatus::ok) << text;
    fs::remove(claim_path());
  }
}

TEST_F(FileClaims, AnObstacleInTheirPlaceIsAFault) {
  fs::create_directories(claim_path());
  EXPECT_EQ(claim_here(), StoreStatus::io_error);
  EXPECT_EQ(store_->renew(key_, {"a-1"}, 1min, {}).status, StoreStatus::io_error);
  EXPECT_EQ(store_->release(key_, {"a-1"}, ClaimOutcome::stored, {}).status, StoreStatus::io_error);
  EXPECT_TRUE(put_one(*store_, key_, pattern(1, 100)).ok());
}

TEST_F(FileClaims, LeaveNothingBehind) {
  for (int i = 0; i < 20; ++i) {
    ClaimToken token;
    ASSERT_TRUE(store_->claim(key_, 1min, token, {}).ok());
    EXPECT_EQ(claim_here(), StoreStatus::conflict);
    ASSERT_TRUE(store_->release(key_, token, ClaimOutcome::stored, {}).ok());
  }
  EXPECT_LE(count_temporary_files(), 1U);
  EXPECT_FALSE(fs::exists(claim_path()));
  store_.reset();
  EXPECT_EQ(count_temporary_files(), 0U);
  EXPECT_LE(claim_path().filename().string().size(), 80U);
}

// A claim for each encode; and file systems that are slow to make what was just removed.
TEST_F(FileClaims, UseTheirFilesAgain) {
  const file::Layout layout(root());
  const auto inode_of = [&](const EmbeddingKey& key) {
    struct stat status;
    EXPECT_EQ(::stat(layout.claim_path(key).c_str(), &status), 0);
    return status.st_ino;
  };
  const auto text_of = [&](const EmbeddingKey& key) {
    std::ifstream in(layout.claim_path(key));
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  Process process(root(), file::make_identity());
  const ClaimToken first = process.claim(key_);
  const auto inode = inode_of(key_);
  const std::string text = text_of(key_);
  // Longer than any other: what comes after it must not end in its rest.
  std::ofstream(claim_path(), std::ios::app) << std::string(100, ' ');
  EXPECT_EQ(process.claims().release(key_, first).status, StoreStatus::conflict) << "not readable";
  fs::resize_file(claim_path(), text.size());
  ASSERT_TRUE(process.claims().release(key_, first).ok());
  for (std::uint64_t number = 2; number < 20; ++number) {
    const EmbeddingKey key = key_number(number);  // in another directory
    const ClaimToken token = process.claim(key);
    EXPECT_EQ(inode_of(key), inode);
    EXPECT_EQ(text_of(key).size(), text.size() + (number > 10 ? 1 : 0));
    EXPECT_EQ(process.claims().release(key, first).status, StoreStatus::conflict);
    EXPECT_TRUE(process.claims().renew(key, token, 1h).ok());
    EXPECT_TRUE(process.claims().release(key, token).ok());
  }
}

TEST_F(FileClaims, DoWithoutTheFileThatSomebodyHasSwept) {
  ClaimToken token;
  ASSERT_TRUE(store_->claim(key_, 1min, token, {}).ok());
  ASSERT_TRUE(store_->release(key_, token, ClaimOutcome::stored, {}).ok());
  std::vector<fs::path> spares;
  for (const auto& entry : fs::recursive_directory_iterator(root() / "v1")) {
    if (entry.path().filename().string().starts_with(".vt1-tmp-")) spares.push_back(entry.path());
  }
  ASSERT_EQ(spares.size(), 1U);
  fs::remove(spares.front());
  ASSERT_TRUE(store_->claim(key_, 1min, token, {}).ok());
  EXPECT_EQ(claim_here(), StoreStatus::conflict);
}

TEST_F(FileClaims, TakeNoFileOfAnothersForTheirOwn) {
  Process process(root(), stranger_);
  process.claim(key_, 1s);
  make_old(claim_path(), 1h);
  ClaimToken token;
  ASSERT_TRUE(store_->claim(key_, 1min, token, {}).ok());
  EXPECT_EQ(count_temporary_files(), 0U);
}

TEST_F(FileClaims, ThatAreOverAreSweptByTheNextCount) {
  Process process(root(), stranger_);
  process.claim(key_, 1s);
  make_old(claim_path(), 1h);
  Process alive(root(), file::make_identity());
  const ClaimToken kept = alive.claim(key_number(2));
  const auto another = open(100 * mib);
  EXPECT_TRUE(eventually([&] { return !fs::exists(claim_path()); }));
  EXPECT_TRUE(alive.claims().renew(key_number(2), kept, 1h).ok());
}

TEST_F(FileClaims, OfManyWhoFindADeadOneOneWins) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    const EmbeddingKey key = key_number(round);
    Process process(root(), stranger_);
    process.claim(key, 1s);
    make_old(file::Layout(root()).claim_path(key), 1h);
    std::atomic<int> won{0};
    {
      std::vector<std::jthread> claimants;
      for (int i = 0; i < 4; ++i) {
        claimants.emplace_back([&] {
          ClaimToken token;
          if (store_->claim(key, 1min, token, {}).ok()) ++won;
        });
      }
    }
    // Two, if one took away what another had just put there; see file_store.h.
    EXPECT_GE(won, 1);
    ClaimToken token;
    EXPECT_EQ(store_->claim(key, 1min, token, {}).status, StoreStatus::conflict);
  }
  EXPECT_EQ(count_temporary_files(), 0U);
}

}  // namespace
}  // namespace vitrove::testing
