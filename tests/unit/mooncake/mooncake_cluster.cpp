#include "unit/mooncake/mooncake_cluster.h"

#include <atomic>
#include <csignal>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract/test_values.h"
#include "stores/mooncake/master_probe.h"
#include "support/paths.h"
#include "unit/mooncake/waiting.h"

namespace vitrove::testing {

TestProcess::TestProcess(std::vector<std::string> command, const std::filesystem::path& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int error =
      ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command.front());
}

TestProcess::~TestProcess() { kill(); }

void TestProcess::signal(int number) const { ::kill(pid_, number); }

void TestProcess::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

bool TestProcess::runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }

int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  const bool bound = ::bind(fd, raw, length) == 0 && ::getsockname(fd, raw, &length) == 0;
  ::close(fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::filesystem::path MooncakeCluster::python() {
  return test::source_dir() / "build" / "mooncake-venv" / "bin" / "python";
}

std::filesystem::path MooncakeCluster::program(const char* name) {
  const auto library = test::source_dir() / "build" / "mooncake-venv" / "lib";
  for (const auto& version : std::filesystem::directory_iterator(library)) {
    const auto path = version.path() / "site-packages" / "mooncake" / name;
    if (std::filesystem::exists(path)) return path;
  }
  throw std::runtime_error("the Mooncake wheel is missing: ./run setup");
}

MooncakeCluster::MooncakeCluster(int lease) : lease_(lease) {}

// Another program may take a port between our finding it and Mooncake's opening it.
template <typename Start, typename IsThere>
void MooncakeCluster::start(std::optional<TestProcess>& process, Start start, IsThere is_there) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    process.reset();
    process.emplace(start());
    if (eventually([&] { return is_there() || !process->runs(); }) && process->runs()) return;
  }
  throw std::runtime_error("Mooncake's programs do not start");
}

void MooncakeCluster::start_master() {
  const auto command = [this] {
    return TestProcess({program("mooncake_master"), "--rpc_address=127.0.0.1",
                        "--rpc_port=" + std::to_string(master_port_), "--metrics_host=127.0.0.1",
                        "--metrics_port=" + std::to_string(free_port()), "--logtostderr",
                        "--default_kv_lease_ttl=" + std::to_string(lease_)},
                       directory_.path() / "master.log");
  };
  start(master_, command,
        [this] { return mooncake::why_unreachable(address(), std::chrono::seconds(1)).empty(); });
}

void MooncakeCluster::start_holder() {
  const auto store = make_mooncake_store(options());
  const auto command = [this] {
    return TestProcess(
        {program("mooncake_client"), "--host=127.0.0.1", "--metadata_server=P2PHANDSHAKE",
         "--master_server_address=" + address(), "--port=" + std::to_string(free_port()),
         "--global_segment_size=1 GB", "--logtostderr"},
        directory_.path() / "holder.log");
  };
  start(holder_, command, [&] { return takes_value(*store); });
}

MooncakeStoreOptions MooncakeCluster::options() const {
  MooncakeStoreOptions options;
  options.master = address();
  options.python = python();
  options.prefix = fresh_prefix();
  return options;
}

MooncakeCluster& shared_cluster() {
  static MooncakeCluster* const cluster = [] {
    static MooncakeCluster one;
    one.start_master();
    one.start_holder();
    return &one;
  }();
  return *cluster;
}

std::string fresh_prefix() {
  static std::atomic<int> number{0};
  return "t" + std::to_string(::getpid()) + "-" + std::to_string(++number) + "/";
}

bool takes_value(EmbeddingStore& store) {
  static std::atomic<std::uint64_t> number{0};
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  const EmbeddingKey key = key_number(++number, "probe");
  return put_one(store, key, pattern(1, 100), PutMode::if_absent, context).ok();
}

bool takes_values(EmbeddingStore& store) {
  return eventually([&] { return takes_value(store); });
}

}  // namespace vitrove::testing
