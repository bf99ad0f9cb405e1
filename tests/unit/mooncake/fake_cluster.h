// A "cluster" of tests/mooncake/fake_library.cpp: a directory, and the faults that are on order.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "contract/temporary_directory.h"
#include "support/paths.h"
#include "vitrove/mooncake_store.h"

namespace vitrove::testing {

class FakeCluster {
 public:
  MooncakeStoreOptions options() const {
    MooncakeStoreOptions options;
    options.master = "fake://cluster";  // not an address: nobody knocks there
    options.metadata = directory_.path();
    options.library = library();
    options.helper = test::binary_dir() / "vitrove-mooncake-helper";
    return options;
  }
  static std::string library() {
    return test::binary_dir() / "test-plugins" / "libfake_mooncake.so";
  }

  // Until told otherwise every call meets this fault; empty: none.
  void set_faults(const std::string& lines) const {
    const auto draft = directory_.path() / "faults-draft";
    std::ofstream(draft) << lines << '\n';
    std::filesystem::rename(draft, directory_.path() / "faults");
  }
  // From now on what values move from and to is written down: lines of "put BYTES MEMORY".
  void tell_moves() const { std::ofstream(directory_.path() / "tell-moves"); }
  std::string moves() const {
    std::ifstream file(directory_.path() / "moves");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::filesystem::path& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace vitrove::testing
