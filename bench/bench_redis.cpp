// The Redis store: GET into page runs beside `redis-benchmark -t get -d`, which reads the same
// bytes from the same server and throws them away; and what both cost the client's CPU.
//
// A server of our own is started (redis-server of Debian), and one key is set that redis-benchmark
// reads: without -r it asks for the literal key `key:__rand_int__`, and would else time answers of
// nothing. Both sides have as many callers (connections of redis-benchmark) with as many values a
// call (its pipeline): fifty of one value, as it does without -c and -P, four of one value, as a
// server's lane asks, and one of four and of sixteen, between whose calls the server rests. How
// busy it was on either side is told as well: at 100 % no client can get more out of it. Own
// options: --redis-server PROGRAM, --redis-benchmark PROGRAM.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
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
  // Of its main thread, which does the work.
  double cpu_seconds() const {
    std::uint64_t nanoseconds = 0;
    std::ifstream("/proc/" + std::to_string(pid_) + "/schedstat") >> nanoseconds;
    return static_cast<double>(nanoseconds) / 1e9;
  }
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
  double server_busy_percent = 0;
};

class Set {
 public:
  Set(const Server& server, const std::string& benchmark, std::uint64_t value_bytes,
      std::size_t callers, std::size_t values_a_call)
      : server_(server),
        benchmark_(benchmark),
        value_bytes_(value_bytes),
        callers_(callers),
        values_a_call_(values_a_call),
        count_(bytes_a_side / value_bytes / (callers * values_a_call) * callers * values_a_call),
        store_(server.open()),
        pool_(options(value_bytes * places())) {
    const auto rows = static_cast<std::uint32_t>(value_bytes / row_bytes);
    const std::vector<std::byte> value(value_bytes, std::byte{'x'});
    const ConstBuffer buffer(value);
    for (std::size_t i = 0; i < keys_in_store; ++i) {
      keys_.push_back(EmbeddingKey{sha256("bench/" + std::to_string(i))});
      const auto put = store_->batch_put({&keys_.back(), 1}, {&buffer, 1}, PutMode::replace, {});
      if (!put.at(0).ok()) fail("put failed");
    }
    for (std::size_t i = 0; i < places(); ++i) {
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

  Figures get() {
    rusage before{};
    rusage after{};
    const double server_before = server_.cpu_seconds();
    ::getrusage(RUSAGE_SELF, &before);
    const double seconds = bench::seconds_of([&] { get_all(); });
    ::getrusage(RUSAGE_SELF, &after);
    return figures_of(seconds, cpu_seconds(after) - cpu_seconds(before),
                      server_.cpu_seconds() - server_before);
  }

  Figures benchmark() const {
    rusage usage{};
    const double server_before = server_.cpu_seconds();
    const double seconds = bench::seconds_of([&] {
      const pid_t pid =
          start({benchmark_, "-h", "127.0.0.1", "-p", std::to_string(server_.port()), "-t", "get",
                 "-d", std::to_string(value_bytes_), "-n", std::to_string(count_), "-c",
                 std::to_string(callers_), "-P", std::to_string(values_a_call_), "-q"});
      int status = 0;
      if (::wait4(pid, &status, 0, &usage) != pid || status != 0) fail("redis-benchmark failed");
    });
    return figures_of(seconds, cpu_seconds(usage), server_.cpu_seconds() - server_before);
  }

 private:
  static constexpr std::uint32_t row_bytes = 4096;
  static constexpr std::size_t keys_in_store = 16;

  Figures figures_of(double seconds, double client, double server) const {
    const double gigabytes = static_cast<double>(count_ * value_bytes_) / 1e9;
    return {gigabytes / seconds, client / gigabytes, server / seconds * 100};
  }

  static PagePoolOptions options(std::uint64_t bytes) {
    PagePoolOptions options;
    options.pool_bytes = bytes + 16 * mib;
    return options;
  }

  void get_all() {
    std::vector<std::future<void>> others;
    for (std::size_t caller = 1; caller < callers_; ++caller) {
      others.push_back(std::async(std::launch::async, [this, caller] { get_part(caller); }));
    }
    get_part(0);
    for (auto& other : others) other.get();
  }

  // Where values come to lie: as many for each caller, and sixteen or more of all.
  std::size_t places() const {
    const std::size_t enough = (keys_in_store + callers_ - 1) / callers_;
    return callers_ * std::max(values_a_call_, enough);
  }

  // Each caller has places of his own.
  void get_part(std::size_t caller) {
    const std::uint64_t count = count_ / callers_;
    for (std::uint64_t done = 0; done < count; done += values_a_call_) get_batch(caller, done);
  }

  void get_batch(std::size_t caller, std::uint64_t first) {
    std::vector<EmbeddingKey> keys;
    std::vector<MutableBufferList> lists;
    for (std::size_t i = 0; i < values_a_call_; ++i) {
      const std::size_t number = caller + (first + i) * callers_;
      keys.push_back(keys_[number % keys_.size()]);
      lists.emplace_back(buffers_[number % buffers_.size()]);
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
  const std::size_t callers_;
  const std::size_t values_a_call_;
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
    std::size_t callers;
    std::size_t values_a_call;
    double target;
  };
  for (const Case& one : {Case{"64KiB/50_callers", 64 * kib, 50, 1, 0.9},
                          {"64KiB/4_callers", 64 * kib, 4, 1, 0.9},
                          {"64KiB/by_4", 64 * kib, 1, 4, 0.9},
                          {"64KiB/by_16", 64 * kib, 1, 16, 0.9},
                          {"1MiB/50_callers", mib, 50, 1, 0.9},
                          {"1MiB/4_callers", mib, 4, 1, 0.9},
                          {"1MiB/by_4", mib, 1, 4, 0.9},
                          {"8MiB/50_callers", 8 * mib, 50, 1, 1.2},
                          {"8MiB/4_callers", 8 * mib, 4, 1, 1.2},
                          {"8MiB/by_4", 8 * mib, 1, 4, 1.2}}) {
    const std::string name = std::string("redis_get/") + one.name;
    if (!harness.wants(name)) continue;
    const Server server(program);
    Set set(server, benchmark, one.bytes, one.callers, one.values_a_call);
    std::vector<double> ours;
    std::vector<double> other;
    std::vector<double> busy_by_ours;
    std::vector<double> busy_by_other;
    harness.compare(
        {name, "GB/s", "redis-benchmark -t get", bench::ratio_at_least(one.target)},
        [&] {
          const Figures figures = set.get();
          ours.push_back(figures.cpu_seconds_per_gigabyte);
          busy_by_ours.push_back(figures.server_busy_percent);
          return figures.gigabytes_per_second;
        },
        [&] {
          const Figures figures = set.benchmark();
          other.push_back(figures.cpu_seconds_per_gigabyte);
          busy_by_other.push_back(figures.server_busy_percent);
          return figures.gigabytes_per_second;
        });
    harness.record(
        {name + "/client_cpu", "s/GB", "redis-benchmark -t get", bench::ratio_at_most(1)},
        bench::median(ours), bench::median(other));
    harness.record({name + "/server_busy", "%", "redis-benchmark -t get"},
                   bench::median(busy_by_ours), bench::median(busy_by_other));
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
