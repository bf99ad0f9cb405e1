// file: URLs: whatever is asked for, only files below the one directory are read.
//
// In the input @ stands for that directory, of which nobody knows the name before.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <stdlib.h>  // mkdtemp

#include "fuzz/media_fuzz.h"
#include "media/local_file.h"

namespace {

namespace fs = std::filesystem;

constexpr std::string_view open_to_all = "open to all";
constexpr std::uint64_t most_bytes = 64;

// A directory that may be read, among things that may not; gone at the end.
class Tree {
 public:
  Tree() {
    std::string name = (fs::temp_directory_path() / "file-url.XXXXXX").string();
    vitrove::fuzz::check(mkdtemp(name.data()) != nullptr, "there is a temporary folder");
    base_ = name;
    fs::create_directories(root() / "a" / "b c");
    for (const char* file : {"x", "a/y", "a/b c/%41", "a/..z"}) write(root() / file, open_to_all);
    write(root() / "large", std::string(most_bytes + 1, 'l'));
    write(base_ / "secret", "nobody may read this");
    fs::create_symlink("../secret", root() / "out");
    fs::create_symlink("../..", root() / "a" / "up");
    fs::create_symlink("x", root() / "in");
    fs::create_directory_symlink(root(), base_ / "other name");
  }
  ~Tree() {
    std::error_code error;
    fs::remove_all(base_, error);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  fs::path root() const { return base_ / "root"; }
  fs::path other_name() const { return base_ / "other name"; }

 private:
  static void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  fs::path base_;
};

std::string url_of(std::string_view input, const fs::path& root) {
  std::string url = "file:";
  for (const char c : input) {
    if (c == '@') {
      url += root.string();
    } else {
      url += c;
    }
  }
  return url;
}

void try_to_read(const vitrove::LocalFiles& files, const std::string& url) {
  try {
    const auto bytes = files.read(url, most_bytes);
    vitrove::fuzz::check(std::ranges::equal(bytes, std::as_bytes(std::span(open_to_all))),
                         "what is read lies below the directory");
  } catch (const vitrove::Error& error) {
    const int status = vitrove::http_status(error.code());
    vitrove::fuzz::check(status == 400 || status == 403 || status == 404 || status == 413,
                         "only errors that a client can cause");
    vitrove::fuzz::check(std::string_view(error.what()).find("file-url.") == std::string_view::npos,
                         "no path of the host is told");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tree tree;
  static const vitrove::LocalFiles plain(tree.root());
  static const vitrove::LocalFiles renamed(tree.other_name());
  const std::string_view input = vitrove::fuzz::as_text(data, size);
  for (const vitrove::LocalFiles* files : {&plain, &renamed}) {
    for (const fs::path& root : {tree.root(), tree.other_name()}) {
      try_to_read(*files, url_of(input, root));
    }
  }
  return 0;
}
