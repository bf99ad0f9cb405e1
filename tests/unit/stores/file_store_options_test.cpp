// How a file store is made, from options and from a URL; and the names that it gives to files
// (field cases B48, B49, B79, B89).
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

#include "contract/temporary_directory.h"
#include "contract/test_values.h"
#include "stores/file/layout.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(FileStoreNames, AreShortWhateverTheKey) {
  const file::Layout layout("/r");
  EmbeddingKey key;
  key.digest.bytes.fill(std::byte{0xFF});
  const file::ProcessIdentity writer{"0123456789abcdef", "fedcba9876543210", 0x7fffffff};
  const fs::path temporary =
      layout.temporary_path(key, writer, std::numeric_limits<std::uint64_t>::max());
  EXPECT_LE(temporary.filename().string().size(), 80u);
  EXPECT_LE(fs::path(layout.path_of(key)).filename().string().size(), 80u);
  EXPECT_EQ(file::parse_temporary_name(temporary.filename().string()), writer);
  EXPECT_EQ(fs::path(layout.path_of(key)).lexically_relative("/r/v1"), "f/f/" + key.text());
}

TEST(FileStoreNames, AreOursOnlyWhenTheyAreExactlyThat) {
  const EmbeddingKey key = key_number(1);
  const std::string name = key.text();
  const std::string first = name.substr(4, 1);
  const std::string second = name.substr(5, 1);
  EXPECT_EQ(file::parse_value_name(first, second, name), key);
  EXPECT_FALSE(file::parse_value_name(first, "zz", name));
  EXPECT_FALSE(file::parse_value_name(second + "x", second, name));
  EXPECT_FALSE(file::parse_value_name(first, second, name + ".bak"));
  EXPECT_FALSE(file::parse_value_name(first, second, name.substr(0, 67)));
  std::string capitals = name;
  for (char& c : capitals) c = static_cast<char>(std::toupper(c));
  EXPECT_FALSE(file::parse_value_name(first, second, "vt1-" + capitals.substr(4)));
  for (const std::string other :
       {"", ".vt1-tmp-", ".vt1-tmp-0123456789abcdef", ".vt1-tmp-0123456789abcdef-1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1-",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210--1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1-1-",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1-1-1",
        ".vt1-tmp-0123456789abcdeg-fedcba9876543210-1-1",
        ".vt1-tmp-0123456789abcdef-fedcba987654321-1-1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1-x",
        ".vt1-tmp-0123456789abcdef_fedcba9876543210-1-1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-000000001-1",
        ".vt1-tmp-0123456789abcdef-fedcba9876543210-1-00000000000000001",
        "vt1-tmp-0123456789abcdef-fedcba9876543210-1-1", ".vt1-tmp-../../../../abcdef-1"}) {
    EXPECT_FALSE(file::parse_temporary_name(other)) << other;
  }
}

std::string refusal(const FileStoreOptions& options) {
  try {
    make_file_store(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(FileStoreOptions, AreRefusedWithAReason) {
  EXPECT_THAT(refusal({}), HasSubstr("directory is missing"));
  EXPECT_THAT(refusal({.root = "/"}), HasSubstr("directory is missing"));
  EXPECT_THAT(refusal({.root = "relative/path"}), HasSubstr("not absolute"));
  EXPECT_THAT(refusal({.root = "/tmp/x", .capacity = 0}), HasSubstr("capacity"));
  EXPECT_THAT(refusal({.root = "/tmp/x", .capacity = 1000}), HasSubstr("capacity"));
  EXPECT_THAT(refusal({.root = "/proc/self/nothing", .strict = true}), HasSubstr("cannot be used"));
}

TEST(FileStoreUrl, ReadsItsOptionsAndRefusesOthers) {
  const auto factory = EmbeddingStoreFactory::with_builtins();
  TemporaryDirectory directory;
  const std::string url = "file://" + (directory.path() / "a b").string();
  const auto store = factory.create_backend(url + "?capacity=3MiB&fsync=true&strict=yes");
  EXPECT_EQ(store->health().capacity, 3u << 20);
  EXPECT_TRUE(fs::is_directory(directory.path() / "a b"));

  const auto message = [&](const std::string& bad) {
    try {
      factory.create_backend(bad);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message(url + "?capcity=1GiB"), HasSubstr("capacity, fsync, guest, strict"));
  EXPECT_THAT(message("file"), HasSubstr("directory is missing"));
  EXPECT_THAT(message("file://"), HasSubstr("directory is missing"));
  EXPECT_THAT(message("file://var/lib"), HasSubstr("no host"));
  EXPECT_THAT(message("file:var/lib"), HasSubstr("not absolute"));
  EXPECT_THAT(message("file:///x?capacity=much"), HasSubstr("'capacity'"));
  EXPECT_THAT(message("file:///x?fsync=perhaps"), HasSubstr("'fsync'"));
}

TEST(FileStoreStart, IsDegradedUntilTheDirectoryCanBeUsed) {
  TemporaryDirectory directory;
  std::ofstream(directory.path() / "store") << "a file in the directory's place";
  const auto store = make_file_store({.root = directory.path() / "store"});
  const StoreResult failed = put_one(*store, key_number(1), pattern(1, 500));
  EXPECT_EQ(failed.status, StoreStatus::io_error);
  EXPECT_EQ(failed.error_number, ENOTDIR);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  EXPECT_FALSE(store->health().detail.empty());
  Bytes bytes(500);
  EXPECT_EQ(get_one(*store, key_number(1), bytes).error_number, ENOTDIR);

  fs::remove(directory.path() / "store");
  EXPECT_TRUE(put_one(*store, key_number(1), pattern(1, 500)).ok());
  EXPECT_EQ(store->health().state, StoreState::ready);
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 500));
}

}  // namespace
}  // namespace vitrove::testing
