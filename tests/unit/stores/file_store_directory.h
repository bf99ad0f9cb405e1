// What the tests of the file store's directory share: a root of their own, files planted in it as
// others would, and a look at what is there.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "contract/temporary_directory.h"
#include "contract/test_values.h"
#include "stores/file/directory_state.h"
#include "stores/file/layout.h"
#include "unit/stores/directory_tree.h"
#include "vitrove/file_store.h"

namespace vitrove::testing {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline constexpr std::uint64_t mib = std::uint64_t{1} << 20;

class FileStoreDirectory : public ::testing::Test {
 protected:
  std::unique_ptr<EmbeddingStore> open(std::uint64_t capacity) const {
    return make_file_store({.root = root(), .capacity = capacity});
  }
  fs::path root() const { return directory_.path() / "store"; }
  fs::path path_of(const EmbeddingKey& key) const { return file::Layout(root()).path_of(key); }
  fs::path state_path() const { return file::Layout(root()).state_path(); }

  std::uint64_t disk_use() const { return testing::disk_use(root()); }
  std::size_t count_values() const { return count_files_named(root(), "vt1-"); }
  std::size_t count_temporary_files() const { return count_files_named(root(), ".vt1-tmp-"); }

  // Puts a file where a value belongs, as another program would.
  void plant(const EmbeddingKey& key, std::size_t size, std::chrono::seconds age) const {
    fs::create_directories(path_of(key).parent_path());
    const Bytes bytes = pattern(1, size);
    std::ofstream(path_of(key), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    make_old(path_of(key), age);
  }
  static void make_old(const fs::path& path, std::chrono::seconds age) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - age);
  }

  template <typename Condition>
  static bool eventually(Condition condition) {
    const auto patience = std::chrono::steady_clock::now() + 120s;
    while (std::chrono::steady_clock::now() < patience) {
      if (condition()) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

  void change_state(const std::function<void(file::DirectoryState&)>& change) const {
    fs::create_directories(root() / "v1");
    ASSERT_EQ(
        file::StateFile(state_path()).update(std::chrono::steady_clock::now() + 60s, 0600, change),
        0);
  }

  TemporaryDirectory directory_;
};

}  // namespace vitrove::testing
