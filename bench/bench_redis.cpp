// The Redis store: GET into page runs beside `redis-benchmark -t get -d`, which reads the same
// bytes from the same server and throws them away; and what both cost the client's CPU.
//
// A server of our own is started (redis-server of Debian), and one key is set that redis-benchmark
// reads: without -r it asks for the literal key `key:__rand_int__`, and would else time answers of
// nothing. Both sides have as many GETs on the way at a time. Own options: --redis-server PROGRAM,
// --redis-benchmark PROGRAM.
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "harness.h"
#include "stores/redis/dial.h"
#include "stores/redis/exchange.h"
#include "vitrove/page_pool.h"
#include "vitrove/redis_store.h"

namespace {

namespace fs = std::filesystem;
using namespace vitrove;
using bench::Harness;

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t bytes_a_side = 512 * mib;
constexpr std::size_t concurrency = 4;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

int free_port() {
  const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(probe.get(), any, size) != 0 || ::getsockname(probe.get(), any, &size) != 0) {
    fail("no free port");
  }
  return ntohs(address.sin_port);
}

pid_t start(std::vector<std::string> words) {
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, raw.front(), &actions, nullptr, raw.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("cannot start " + words.front());
  return pid;
}

class Server {
 public:
  explicit Server(const std::string& program) {
    std::string name = (fs::temp_directory_path() / "vitrove-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary directory");
    directory_ = name;
    pid_ = start({program, "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir", name,
                  "--save", "", "--appendonly", "no"});
  }
  ~Server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  std::unique_ptr<EmbeddingStore> open() const {
    auto store = make_redis_store({.servers = {{"127.0.0.1", port_}}});
    for (int i = 0; i < 1000 && store->health().state != StoreState::ready; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return store;
  }

 private:
  fs::path directory_;
  int port_ = free_port();
  pid_t pid_ = -1;
};

double cpu_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One side's figures of its last run.
struct Figures {
  double gigabytes_per_second = 0;
  double cpu_seconds_per_gigabyte = 0;
};

Figures figures_of(double seconds, double cpu, std::uint64_t bytes) {
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / seconds, cpu / gigabytes};
}

class Set {
 public:
  Set(const Server& server, const std::string& benchmark, std::uint64_t value_bytes)
      : server_(server),
        benchmark_(benchmark),
        value_bytes_(value_bytes),
        count_(bytes_a_side / value_bytes),
        store_(server.open()),
        pool_(options(value_bytes)) {
    const auto rows = static_cast<std::uint32_t>(value_bytes / row_bytes);
    const std::vector<std::byte> value(value_bytes, std::byte{'x'});
    const ConstBuffer buffer(value);
    for (std::size_t i = 0; i < keys_in_store; ++i) {
      keys_.push_back(EmbeddingKey{sha256("bench/" + std::to_string(i))});
      const auto put = store_->batch_put({&keys_.back(), 1}, {&buffer, 1}, PutMode::replace, {});
      if (!put.at(0).ok()) fail("put failed");
      auto runs = pool_.allocate(rows, row_bytes);
      if (!runs) fail("pool too small");
      runs_.push_back(std::move(*runs));
      std::vector<MutableBuffer> buffers;
      for (const auto& segment : runs_.back().segments) {
        buffers.push_back(pool_.segment_bytes(segment));
      }
      buffers_.push_back(std::move(buffers));
    }
    // What redis-benchmark asks for.
    const std::string name = "key:__rand_int__";
    set(name, value);
  }

  // Batches as wide as the other side's connections are many.
  Figures get() {
    rusage before{};
    rusage after{};
    ::getrusage(RUSAGE_THREAD, &before);
    const double seconds = bench::seconds_of([&] {
      for (std::uint64_t done = 0; done < count_; done += concurrency) get_batch(done);
    });
    ::getrusage(RUSAGE_THREAD, &after);
    return figures_of(seconds, cpu_seconds(after) - cpu_seconds(before), count_ * value_bytes_);
  }

  Figures benchmark() const {
    rusage usage{};
    const double seconds = bench::seconds_of([&] {
      const pid_t pid = start({benchmark_, "-h", "127.0.0.1", "-p", std::to_string(server_.port()),
                               "-t", "get", "-d", std::to_string(value_bytes_), "-n",
                               std::to_string(count_), "-c", std::to_string(concurrency), "-q"});
      int status = 0;
      if (::wait4(pid, &status, 0, &usage) != pid || status != 0) fail("redis-benchmark failed");
    });
    return figures_of(seconds, cpu_seconds(usage), count_ * value_bytes_);
  }

 private:
  static constexpr std::uint32_t row_bytes = 4096;
  static constexpr std::size_t keys_in_store = 4 * concurrency;

  static PagePoolOptions options(std::uint64_t value_bytes) {
    PagePoolOptions options;
    options.pool_bytes = keys_in_store * value_bytes + 16 * mib;
    return options;
  }

  void get_batch(std::uint64_t first) {
    std::array<EmbeddingKey, concurrency> keys;
    std::array<MutableBufferList, concurrency> lists;
    for (std::size_t i = 0; i < concurrency; ++i) {
      const std::size_t number = (first + i) % keys_.size();
      keys[i] = keys_[number];
      lists[i] = buffers_[number];
    }
    for (const auto& result : store_->batch_get_into_multi_buffers(keys, lists, {})) {
      if (!result.ok()) fail("get failed");
    }
  }

  void set(const std::string& name, ConstBuffer value) const {
    redis::Settings settings;
    settings.options.servers = {{"127.0.0.1", server_.port()}};
    const auto deadline = redis::Clock::now() + std::chrono::seconds(10);
    auto dialed = redis::dial({"127.0.0.1", server_.port()}, settings, deadline, {});
    if (!dialed.connection) fail("cannot connect");
    auto framed = redis::encode_set(name, value.size(), {});
    redis::Command command;
    command.head = framed.head;
    command.tail = framed.tail;
    command.payload = {&value, 1};
    const StoreContext context;
    std::vector<std::unique_ptr<redis::Exchange>> exchange;
    exchange.push_back(
        std::make_unique<redis::Exchange>(*dialed.connection, std::vector{&command}, context));
    redis::drive(exchange, context, std::chrono::seconds(10));
    if (command.reply.text != "OK") fail("cannot set " + name);
  }

  const Server& server_;
  const std::string benchmark_;
  const std::uint64_t value_bytes_;
  const std::uint64_t count_;
  std::unique_ptr<EmbeddingStore> store_;
  PagePool pool_;
  std::vector<EmbeddingKey> keys_;
  std::vector<PageRuns> runs_;
  std::vector<std::vector<MutableBuffer>> buffers_;
};

void run(Harness& harness, const std::string& program, const std::string& benchmark) {
  struct Case {
    const char* name;
    std::uint64_t bytes;
    double target;
  };
  for (const Case& one :
       {Case{"64KiB", 64 * kib, 0.9}, {"1MiB", mib, 0.9}, {"8MiB", 8 * mib, 1.2}}) {
    const std::string name = std::string("redis_get/") + one.name;
    if (!harness.wants(name)) continue;
    const Server server(program);
    Set set(server, benchmark, one.bytes);
    std::vector<double> ours;
    std::vector<double> other;
    harness.compare(
        {name, "GB/s", "redis-benchmark -t get", bench::ratio_at_least(one.target)},
        [&] {
          const Figures figures = set.get();
          ours.push_back(figures.cpu_seconds_per_gigabyte);
          return figures.gigabytes_per_second;
        },
        [&] {
          const Figures figures = set.benchmark();
          other.push_back(figures.cpu_seconds_per_gigabyte);
          return figures.gigabytes_per_second;
        });
    harness.record(
        {name + "/client_cpu", "s/GB", "redis-benchmark -t get", bench::ratio_at_most(1)},
        bench::median(ours), bench::median(other));
  }
}

}  // namespace

int main(int argc, char** argv) {
  logger()->set_level(spdlog::level::off);
  Harness harness(argc, argv, {"--redis-server", "--redis-benchmark"});
  try {
    run(harness, harness.option("--redis-server", "redis-server"),
        harness.option("--redis-benchmark", "redis-benchmark"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_redis: %s\n", error.what());
    return 1;
  }
  return harness.finish();
}
