// The file store: a verified GET into page runs, warm page cache, beside a plain preadv of the same
// files into the same runs; and beside Python's safetensors loading the same tensors.
//
// "Verified" is what a lane of the controller does: header, XXH3-128 of the payload, finiteness,
// all while the pieces are hot. Own options: --dir DIRECTORY (on the file system to measure;
// default is the temporary directory), --python PATH (default: build/venv/bin/python of the source
// tree).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "cache/value_verifier.h"
#include "harness.h"
#include "stores/file/layout.h"
#include "vitrove/file_store.h"
#include "vitrove/page_pool.h"

namespace {

namespace fs = std::filesystem;
using namespace vitrove;
using bench::Harness;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t bytes_in_all = 256 * mib;  // far beyond the CPU's caches
constexpr std::uint32_t dim = 2048;

struct Value {
  EmbeddingKey key;
  std::string path;
  PagePool::HeaderSlot slot;
  PageRuns runs;
  std::vector<MutableBuffer> buffers;  // the slot, then the runs
  std::uint64_t size = 0;
};

std::vector<std::byte> make_value(const EmbeddingKey& key, std::uint32_t rows) {
  ValueHeader header;
  header.key = key;
  header.dtype = DType::float16;
  header.rows = rows;
  header.dim = dim;
  std::vector<std::byte> value(header.value_bytes());
  std::uint32_t state = rows;
  for (std::size_t i = value_header_size; i < value.size(); i += 2) {
    state = state * 1664525 + 1013904223;
    const auto finite = static_cast<std::uint16_t>(state >> 16 & 0x3BFF);
    std::memcpy(&value[i], &finite, sizeof finite);
  }
  PayloadChecksum checksum;
  checksum.update(std::span(value).subspan(value_header_size));
  header.payload_checksum = checksum.finish();
  const HeaderBytes encoded = encode_header(header);
  std::copy(encoded.begin(), encoded.end(), value.begin());
  return value;
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

// Values of one size in a store of their own, and page runs to read them into.
class Set {
 public:
  Set(const fs::path& root, std::uint64_t payload_bytes, bool huge_pages)
      : store_(make_file_store({.root = root})), pool_(options(huge_pages)) {
    const file::Layout layout(root);
    const auto rows = static_cast<std::uint32_t>(payload_bytes / (dim * 2));
    for (std::uint64_t i = 0; i < bytes_in_all / payload_bytes; ++i) {
      Value& value = values_.emplace_back();
      value.key = EmbeddingKey{sha256("bench/" + std::to_string(i))};
      value.path = layout.path_of(value.key);
      const auto bytes = make_value(value.key, rows);
      value.size = bytes.size();
      const ConstBuffer buffer(bytes);
      const auto put = store_->batch_put({&value.key, 1}, {&buffer, 1}, PutMode::if_absent, {});
      if (!put.at(0).ok()) fail("put failed");
      auto slot = pool_.borrow_header_slot();
      auto runs = pool_.allocate(rows, dim * 2);
      if (!slot || !runs) fail("pool too small");
      value.slot = std::move(*slot);
      value.runs = std::move(*runs);
      value.buffers.push_back(value.slot.bytes());
      for (const auto& segment : value.runs.segments) {
        value.buffers.push_back(pool_.segment_bytes(segment));
      }
    }
  }

  std::uint64_t bytes() const { return values_.size() * values_.front().size; }
  const std::vector<Value>& values() const { return values_; }

  double verified_get() {
    return bench::gigabytes_per_second(bytes(), [&] {
      for (const Value& value : values_) get(value);
    });
  }

  double plain_read() {
    return bench::gigabytes_per_second(bytes(), [&] {
      for (const Value& value : values_) read(value);
    });
  }

 private:
  // As a lane of the controller watches a get.
  struct Watcher final : PieceObserver {
    explicit Watcher(ValueVerifier& checked) : verifier(checked) {}
    void on_piece(std::size_t, std::uint64_t offset, ConstBuffer piece) noexcept override {
      verifier.on_piece(offset, piece);
    }
    ValueVerifier& verifier;
  };

  static PagePoolOptions options(bool huge_pages) {
    PagePoolOptions options;
    options.pool_bytes = bytes_in_all + bytes_in_all / 4;
    options.header_slots = bytes_in_all / mib;
    options.huge_pages = huge_pages;
    return options;
  }

  void get(const Value& value) {
    ValueExpectation expected;
    expected.key = value.key;
    expected.dtype = DType::float16;
    expected.dim = dim;
    ValueVerifier verifier(WantedValue::of(expected), value.buffers);
    Watcher watcher(verifier);
    StoreContext context;
    context.observer = &watcher;
    const MutableBufferList list(value.buffers);
    const auto results = store_->batch_get_into_multi_buffers({&value.key, 1}, {&list, 1}, context);
    if (!results.at(0).ok()) fail("get failed");
    if (verifier.finish().reject != Reject::none) fail("a good value was rejected");
  }

  static void read(const Value& value) {
    const UniqueFd fd(::open(value.path.c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<iovec> vector;
    for (const MutableBuffer& buffer : value.buffers) {
      vector.push_back({buffer.data(), buffer.size()});
    }
    const ssize_t count = ::preadv(fd.get(), vector.data(), static_cast<int>(vector.size()), 0);
    if (count != static_cast<ssize_t>(value.size)) fail("short read");
  }

  std::unique_ptr<EmbeddingStore> store_;
  PagePool pool_;
  std::vector<Value> values_;
};

// bench/safetensors_load.py with the same tensors in files of its own.
class SafetensorsLoader {
 public:
  SafetensorsLoader(const std::string& python, const fs::path& directory, const Set& set) {
    fs::create_directories(directory);
    std::vector<std::string> arguments = {python, VITROVE_BENCH_SOURCE_DIR "/safetensors_load.py"};
    for (const Value& value : set.values()) {
      arguments.push_back((directory / (value.key.text() + ".safetensors")).string());
      write(value, arguments.back());
    }
    start(arguments);
  }
  ~SafetensorsLoader() {
    if (to_ != nullptr) std::fclose(to_);
    if (from_ != nullptr) std::fclose(from_);
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
  }
  SafetensorsLoader(const SafetensorsLoader&) = delete;
  SafetensorsLoader& operator=(const SafetensorsLoader&) = delete;

  double load(std::uint64_t bytes) {
    double seconds = 0;
    if (std::fputs("\n", to_) < 0 || std::fflush(to_) != 0 ||
        std::fscanf(from_, "%lf", &seconds) != 1) {
      fail("the Python side failed");
    }
    return static_cast<double>(bytes) / 1e9 / seconds;
  }

 private:
  static void write(const Value& value, const std::string& path) {
    std::vector<char> bytes(value.size);
    std::ifstream(value.path, std::ios::binary).read(bytes.data(), std::ssize(bytes));
    const std::uint64_t payload = value.size - value_header_size;
    std::string header = R"({"embedding":{"dtype":"F16","shape":[)" +
                         std::to_string(payload / (dim * 2)) + "," + std::to_string(dim) +
                         R"(],"data_offsets":[0,)" + std::to_string(payload) + "]}}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header;
    file.write(bytes.data() + value_header_size, static_cast<std::streamsize>(payload));
  }

  void start(std::vector<std::string>& arguments) {
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) fail("pipe");
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    const int error = ::posix_spawn(&pid_, raw.front(), &actions, nullptr, raw.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(input[0]);
    ::close(output[1]);
    to_ = ::fdopen(input[1], "w");
    from_ = ::fdopen(output[0], "r");
    if (error != 0) fail("cannot start Python");
  }

  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

class Directory {
 public:
  explicit Directory(const fs::path& parent) {
    std::string name = (parent / "vitrove-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("cannot make a directory in " + parent.string());
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void run(Harness& harness, const fs::path& parent, const std::string& python) {
  for (const std::uint64_t size : {1, 4, 16}) {
    const std::string suffix = "/" + std::to_string(size) + "MiB";
    for (const bool huge_pages : {false, true}) {
      const std::string name = (huge_pages ? "file_get_huge_pages" : "file_get") + suffix;
      const std::string python_name = "file_get_vs_safetensors" + suffix;
      const bool with_python = !huge_pages && harness.wants(python_name);
      if (!harness.wants(name) && !with_python) continue;
      const Directory directory(parent);
      Set set(directory.path() / "store", size * mib, huge_pages);
      // The stretch of 0.85 with huge pages is a wish, and so no target.
      harness.compare(
          {name, "GB/s", "preadv of the same files", bench::ratio_at_least(0.75)},
          [&] { return set.verified_get(); }, [&] { return set.plain_read(); });
      if (!with_python) continue;
      if (::access(python.c_str(), X_OK) != 0) {
        std::fprintf(stderr, "%s: left out, there is no %s\n", python_name.c_str(), python.c_str());
        continue;
      }
      SafetensorsLoader loader(python, directory.path() / "safetensors", set);
      harness.compare(
          {python_name, "GB/s", "safetensors in Python", bench::ratio_at_least(3)},
          [&] { return set.verified_get(); }, [&] { return loader.load(set.bytes()); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Harness harness(argc, argv, {"--dir", "--python"});
  const fs::path parent = harness.option("--dir", fs::temp_directory_path().string());
  const std::string python =
      harness.option("--python", VITROVE_BENCH_SOURCE_DIR "/../build/venv/bin/python");
  try {
    run(harness, parent, python);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_file_store: %s\n", error.what());
    return 1;
  }
  return harness.finish();
}
