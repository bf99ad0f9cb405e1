// The file store: the contract, what stands on disk, and each way in which a disk goes wrong
// (field cases B41, B44, B45, B48, B57, B86, B89). Its capacity is in file_store_capacity_test.cpp.
#include "vitrove/file_store.h"

#include <fstream>
#include <future>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contract/store_contract.h"
#include "contract/temporary_directory.h"
#include "stores/file/layout.h"
#include "unit/stores/directory_tree.h"

namespace vitrove::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

class FileHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make(); }

 private:
  std::unique_ptr<EmbeddingStore> make() const {
    return make_file_store({.root = directory_.path() / "store", .capacity = 1u << 30});
  }
  TemporaryDirectory directory_;
  std::unique_ptr<EmbeddingStore> store_ = make();
};
INSTANTIATE_TYPED_TEST_SUITE_P(File, StoreContract, FileHarness, );

class FileStore : public ::testing::Test {
 protected:
  fs::path root() const { return directory_.path() / "store"; }
  fs::path path_of(const EmbeddingKey& key) const { return file::Layout(root()).path_of(key); }

  void put_ok(const EmbeddingKey& key, ConstBuffer value) {
    const StoreResult result = put_one(*store_, key, value);
    ASSERT_EQ(to_string(result.status), "ok") << "errno " << result.error_number;
  }
  StoreResult get(const EmbeddingKey& key, std::size_t size) {
    Bytes bytes(size);
    return get_one(*store_, key, bytes);
  }
  // Every file below the root, but for the store's own state.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const fs::path& path : paths_below(root())) {
      const std::string name = path.filename();
      if (!fs::is_directory(path) && name != ".vitrove-state") names.push_back(name);
    }
    return names;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<EmbeddingStore> store_ = make_file_store({.root = directory_.path() / "store"});
  const EmbeddingKey key_ = key_number(1);
};

TEST_F(FileStore, NamesAFileByItsKeyInTwoLevelsOfDirectories) {
  put_ok(key_, pattern(1, 500));
  const std::string name = key_.text();
  EXPECT_EQ(path_of(key_), root() / "v1" / name.substr(4, 1) / name.substr(5, 1) / name);
  EXPECT_EQ(files(), std::vector<std::string>{name});
  EXPECT_EQ(fs::file_size(path_of(key_)), 500u);
}

TEST_F(FileStore, KeepsDirectoryAndFilesToItsUser) {
  put_ok(key_, pattern(1, 500));
  EXPECT_EQ(fs::status(root()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(path_of(key_).parent_path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(path_of(key_)).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST(FileStorePermissions, FollowThoseOfARootThatExists) {
  TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 02770), 0);
  const auto store = make_file_store({.root = directory.path()});
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 500)).ok());
  const fs::path file = file::Layout(directory.path()).path_of(key_number(1));
  struct stat status;
  ASSERT_EQ(::stat(file.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0770u);
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660u);
  ASSERT_EQ(::stat(file::Layout(directory.path()).state_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660u);
}

TEST_F(FileStore, FindsItsValuesAgainAfterARestart) {
  put_ok(key_, pattern(1, 5000));
  store_.reset();
  store_ = make_file_store({.root = root()});
  EXPECT_EQ(read_back(*store_, key_), pattern(1, 5000));
}

TEST_F(FileStore, WorksTheSameWithFsync) {
  store_ = make_file_store({.root = root(), .fsync = true});
  put_ok(key_, pattern(1, 5000));
  EXPECT_EQ(read_back(*store_, key_), pattern(1, 5000));
}

// --- Damage ---

TEST_F(FileStore, SaysTheSizeOfAFileThatWasCutOrExtended) {
  put_ok(key_, pattern(1, 5000));
  for (const std::uintmax_t size : {4999u, 5001u, 1u}) {
    fs::resize_file(path_of(key_), size);
    const StoreResult result = get(key_, 5000);
    EXPECT_EQ(result.status, StoreStatus::size_mismatch);
    EXPECT_EQ(result.size, size);
    EXPECT_EQ(exists(*store_, key_).size, size);
  }
}

TEST_F(FileStore, TakesAnEmptyFileForNoValueAtAll) {
  put_ok(key_, pattern(1, 5000));
  fs::resize_file(path_of(key_), 0);
  EXPECT_EQ(get(key_, 5000).status, StoreStatus::absent);
  EXPECT_EQ(exists(*store_, key_).status, StoreStatus::absent);
  put_ok(key_, pattern(2, 5000));  // if_absent
  EXPECT_EQ(read_back(*store_, key_), pattern(2, 5000));
}

TEST_F(FileStore, GivesDamagedBytesToItsReaderWhoFindsOut) {
  const Bytes value = sealed_value(key_, 10, 64, 1);
  put_ok(key_, value);
  ASSERT_EQ(inspect(read_back(*store_, key_), key_), Reject::none);
  for (const std::size_t offset : {0u, 9u, 40u, 200u, 255u, 256u, 700u, 1535u}) {
    Bytes damaged = value;
    damaged[offset] ^= std::byte{4};
    ASSERT_TRUE(put_one(*store_, key_, damaged, PutMode::replace).ok());
    const Bytes back = read_back(*store_, key_);
    EXPECT_EQ(back, damaged);
    EXPECT_NE(inspect(back, key_), Reject::none) << offset;
  }
  ASSERT_TRUE(put_one(*store_, key_, value, PutMode::replace).ok());
  EXPECT_EQ(inspect(read_back(*store_, key_), key_), Reject::none);
}

TEST_F(FileStore, ShowsItsReaderThatAFileWasCopiedToAnotherName) {
  const EmbeddingKey other = key_number(2);
  put_ok(key_, sealed_value(key_, 10, 64, 1));
  put_ok(other, sealed_value(other, 10, 64, 2));
  fs::copy_file(path_of(key_), path_of(other), fs::copy_options::overwrite_existing);
  EXPECT_EQ(inspect(read_back(*store_, other), other), Reject::key);
}

TEST_F(FileStore, LeavesPlantedBytesToTheParserWithoutBelievingThem) {
  put_ok(key_, pattern(1, 300));
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::size_t size = 1 + seed * 7 % 1000;
    const Bytes planted = pattern(seed, size);
    std::ofstream(path_of(key_), std::ios::binary)
        .write(reinterpret_cast<const char*>(planted.data()), std::ssize(planted));
    const Bytes back = read_back(*store_, key_);
    EXPECT_EQ(back, planted);
    EXPECT_NE(inspect(back, key_), Reject::none);
  }
}

// --- Obstacles in a value's place ---

class Obstacle : public FileStore, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    put_ok(key_, pattern(1, 500));
    const fs::path path = path_of(key_);
    fs::remove(path);
    if (GetParam() == "directory") fs::create_directory(path);
    if (GetParam() == "fifo") {
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    }
    if (GetParam() == "loop") fs::create_symlink(path, path);
    if (GetParam() == "dangling") fs::create_symlink("/nonexistent/file", path);
    if (GetParam() == "link") {
      std::ofstream(directory_.path() / "outside") << std::string(500, 'x');
      fs::create_symlink(directory_.path() / "outside", path);
    }
  }
};

TEST_P(Obstacle, IsAnErrorOfItsKeyAloneToReadersWhoNeverBlock) {
  for (const StoreResult& result : {get(key_, 500), exists(*store_, key_)}) {
    EXPECT_EQ(result.status, StoreStatus::conflict);
    EXPECT_NE(result.error_number, 0);
    EXPECT_FALSE(result.is_fault());
  }
}

TEST_P(Obstacle, IsNotListed) {
  int seen = 0;
  const auto visit = [&](const ListedValue&) {
    ++seen;
    return true;
  };
  EXPECT_TRUE(store_->list({.with_header = true}, visit, {}).ok());
  EXPECT_EQ(seen, 0);
}

TEST_P(Obstacle, GivesWayToAPut) {
  ASSERT_TRUE(put_one(*store_, key_, pattern(2, 700), PutMode::replace).ok());
  EXPECT_EQ(read_back(*store_, key_), pattern(2, 700));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path_of(key_))));
}

TEST_P(Obstacle, GivesWayToAPutIfAbsentSinceItIsNoValue) {
  put_ok(key_, pattern(3, 700));
  EXPECT_EQ(read_back(*store_, key_), pattern(3, 700));
}

TEST_P(Obstacle, CanBeRemoved) {
  EXPECT_TRUE(remove_one(*store_, key_).ok());
  EXPECT_EQ(exists(*store_, key_).status, StoreStatus::absent);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Obstacle,
                         ::testing::Values("directory", "fifo", "loop", "dangling", "link"),
                         [](const auto& kind) { return kind.param; });

TEST_F(FileStore, LeavesWhatALinkPointsToAlone) {
  put_ok(key_, pattern(1, 500));
  std::ofstream(directory_.path() / "outside") << "mine";
  fs::remove(path_of(key_));
  fs::create_symlink(directory_.path() / "outside", path_of(key_));
  ASSERT_TRUE(put_one(*store_, key_, pattern(2, 700), PutMode::replace).ok());
  EXPECT_EQ(fs::file_size(directory_.path() / "outside"), 4u);
}

TEST_F(FileStore, CannotPutWhereADirectoryWithForeignFilesStands) {
  put_ok(key_, pattern(1, 500));
  fs::remove(path_of(key_));
  fs::create_directory(path_of(key_));
  std::ofstream(path_of(key_) / "foreign") << "x";
  const StoreResult result = put_one(*store_, key_, pattern(2, 500), PutMode::replace);
  EXPECT_EQ(result.status, StoreStatus::conflict);
  EXPECT_EQ(result.error_number, ENOTEMPTY);
  EXPECT_FALSE(result.is_fault());
  EXPECT_EQ(store_->health().state, StoreState::ready);
  EXPECT_TRUE(fs::exists(path_of(key_) / "foreign"));
  EXPECT_THAT(files(), ::testing::ElementsAre("foreign"));  // no temporary file was left
}

TEST_F(FileStore, MakesADirectoryAgainThatWasRemovedWhileRunning) {
  put_ok(key_, pattern(1, 500));
  for (const fs::path& victim : {path_of(key_).parent_path(), root() / "v1", root()}) {
    fs::remove_all(victim);
    EXPECT_EQ(get(key_, 500).status, StoreStatus::absent);
    EXPECT_EQ(exists(*store_, key_).status, StoreStatus::absent);
    EXPECT_EQ(remove_one(*store_, key_).status, StoreStatus::absent);
    EXPECT_TRUE(store_->list({}, [](const ListedValue&) { return true; }, {}).ok());
    put_ok(key_, pattern(1, 500));
    EXPECT_EQ(read_back(*store_, key_), pattern(1, 500));
  }
}

TEST_F(FileStore, AnswersWhenAFileStandsInADirectorysPlace) {
  put_ok(key_, pattern(1, 500));
  const fs::path directory = path_of(key_).parent_path();
  fs::remove_all(directory);
  std::ofstream(directory) << "x";
  EXPECT_EQ(get(key_, 500).error_number, ENOTDIR);
  EXPECT_EQ(put_one(*store_, key_, pattern(1, 500)).error_number, ENOTDIR);
  EXPECT_EQ(exists(*store_, key_).error_number, ENOTDIR);
  EXPECT_TRUE(store_->list({}, [](const ListedValue&) { return true; }, {}).ok());
}

TEST_F(FileStore, AnswersWhenNoMoreFilesCanBeOpened) {
  put_ok(key_, pattern(1, 500));
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const StoreResult got = get(key_, 500);
  const StoreResult put = put_one(*store_, key_number(2), pattern(2, 500));
  const StoreResult listed = store_->list({}, [](const ListedValue&) { return true; }, {});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(got.status, StoreStatus::io_error);
  EXPECT_EQ(got.error_number, EMFILE);
  EXPECT_EQ(put.status, StoreStatus::io_error);
  EXPECT_EQ(put.error_number, EMFILE);
  EXPECT_EQ(listed.error_number, EMFILE);
  EXPECT_EQ(read_back(*store_, key_), pattern(1, 500));
  put_ok(key_number(2), pattern(2, 500));
}

// Runs `work` without root's licence to open everything. The raw call changes this thread only.
template <typename Work>
void as_nobody(Work work) {
  std::jthread([&] {
    if (::geteuid() == 0) {
      ASSERT_EQ(::syscall(SYS_setresuid, -1, 65534, -1), 0);
    }
    work();
  }).join();
}

TEST_F(FileStore, AnswersDeniedForAFileThatMayNotBeRead) {
  put_ok(key_, pattern(1, 500));
  put_ok(key_number(2), pattern(2, 500));
  for (fs::path at = path_of(key_).parent_path(); at != directory_.path().parent_path();
       at = at.parent_path()) {
    fs::permissions(at, fs::perms(0755));
  }
  fs::permissions(path_of(key_), fs::perms::none);
  as_nobody([&] {
    EXPECT_TRUE(exists(*store_, key_).ok());
    EXPECT_EQ(get(key_, 500).status, StoreStatus::denied);
    EXPECT_EQ(get(key_, 500).error_number, EACCES);
  });
  EXPECT_EQ(read_back(*store_, key_number(2)), pattern(2, 500));
  ASSERT_TRUE(put_one(*store_, key_, pattern(3, 500), PutMode::replace).ok());
  EXPECT_EQ(read_back(*store_, key_), pattern(3, 500));
}

TEST_F(FileStore, AnswersDeniedWhenTheDirectoryIsClosed) {
  put_ok(key_, pattern(1, 500));
  fs::permissions(root(), fs::perms::none);
  as_nobody([&] {
    EXPECT_EQ(get(key_, 500).status, StoreStatus::denied);
    EXPECT_EQ(exists(*store_, key_).status, StoreStatus::denied);
    EXPECT_EQ(put_one(*store_, key_number(2), pattern(2, 500)).status, StoreStatus::denied);
    EXPECT_EQ(remove_one(*store_, key_).status, StoreStatus::denied);
    EXPECT_EQ(store_->list({}, [](const ListedValue&) { return true; }, {}).status,
              StoreStatus::denied);
  });
  EXPECT_EQ(store_->health().state, StoreState::degraded);
  fs::permissions(root(), fs::perms::owner_all);
  put_ok(key_number(2), pattern(2, 500));
  EXPECT_EQ(store_->health().state, StoreState::ready);
  EXPECT_EQ(read_back(*store_, key_), pattern(1, 500));
}

// --- Use ---

TEST_F(FileStore, NotesAUseInTheModificationTimeAtMostOnceAMinute) {
  put_ok(key_, pattern(1, 500));
  const auto set_age = [&](std::chrono::seconds age) {
    fs::last_write_time(path_of(key_), fs::file_time_type::clock::now() - age);
    return fs::last_write_time(path_of(key_));
  };
  const auto young = set_age(std::chrono::seconds(20));
  ASSERT_TRUE(get(key_, 500).ok());
  EXPECT_EQ(fs::last_write_time(path_of(key_)), young);
  const auto old = set_age(std::chrono::hours(1));
  ASSERT_TRUE(get(key_, 500).ok());
  EXPECT_GT(fs::last_write_time(path_of(key_)), old + std::chrono::minutes(55));

  set_age(std::chrono::hours(1));
  put_ok(key_, pattern(1, 500));  // if_absent: finding it there is a use
  EXPECT_GT(fs::last_write_time(path_of(key_)), old + std::chrono::minutes(55));
}

TEST_F(FileStore, ListsHeadersOfWholeValuesOnly) {
  const Bytes value = sealed_value(key_, 4, 8, 1);
  put_ok(key_, value);
  put_ok(key_number(2), pattern(2, 100));
  std::ofstream(path_of(key_).parent_path() / "README") << "foreign";
  std::map<EmbeddingKey, bool> has_header;
  ASSERT_TRUE(store_
                  ->list({.with_header = true},
                         [&](const ListedValue& listed) {
                           has_header[listed.key] = listed.header.has_value();
                           return true;
                         },
                         {})
                  .ok());
  EXPECT_EQ(has_header, (std::map<EmbeddingKey, bool>{{key_, true}, {key_number(2), false}}));
}

TEST_F(FileStore, RemovesDirectoriesThatAreEmptyThen) {
  put_ok(key_, pattern(1, 500));
  ASSERT_TRUE(remove_one(*store_, key_).ok());
  EXPECT_FALSE(fs::exists(path_of(key_).parent_path()));
  EXPECT_FALSE(fs::exists(path_of(key_).parent_path().parent_path()));
}

TEST_F(FileStore, ShowsNothingOfAPutThatIsStillWriting) {
  const Bytes value = pattern(1, 4 << 20);
  const auto keys = key_numbers(20, "slowly written");
  const auto other = make_file_store({.root = root()});
  std::jthread writer([&] {
    for (const EmbeddingKey& key : keys) EXPECT_TRUE(put_one(*store_, key, value).ok());
  });
  Bytes back(value.size());
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (const EmbeddingKey& key : keys) {
    StoreResult found{StoreStatus::absent};
    while (found.status == StoreStatus::absent && std::chrono::steady_clock::now() < patience) {
      found = get_one(*other, key, back);
    }
    ASSERT_EQ(to_string(found.status), "ok");
    ASSERT_TRUE(back == value);
  }
}

TEST_F(FileStore, LeavesNoTemporaryFileWhenAPutIsGivenUp) {
  std::stop_source source;
  source.request_stop();
  StoreContext cancelled;
  cancelled.cancel = source.get_token();
  put_ok(key_number(2), pattern(2, 100));
  EXPECT_EQ(put_one(*store_, key_, pattern(1, 500), PutMode::if_absent, cancelled).status,
            StoreStatus::cancelled);
  EXPECT_EQ(files(), std::vector<std::string>{key_number(2).text()});
}

}  // namespace
}  // namespace vitrove::testing
