// Runs a fuzz target over files: for builds without libFuzzer, where the corpora are plain tests.
//
//   fuzz_NAME FILE|DIRECTORY…
//
// Says how many inputs ran. Fails when there were none, or when one cannot be read.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(file)), {});
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  // A copy of exactly that size, so that a sanitizer sees a read past the end.
  const std::vector<std::uint8_t> input(content.begin(), content.end());
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t done = 0;
  for (int i = 1; i < count; ++i) {
    for (const fs::path& file : files_of(arguments[i])) {
      if (!replay(file)) return 1;
      ++done;
    }
  }
  std::printf("%zu inputs replayed\n", done);
  return done == 0 ? 1 : 0;
}
