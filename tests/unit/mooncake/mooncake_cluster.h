// A real Mooncake cluster on this machine: mooncake_master and one mooncake_client that lends
// memory, over TCP on ephemeral ports, from the wheel that scripts/setup_mooncake.sh has installed.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "contract/temporary_directory.h"
#include "vitrove/mooncake_store.h"

namespace vitrove::testing {

// A process of the test's own; killed and reaped at the end.
class TestProcess {
 public:
  // What it says goes into `log`.
  TestProcess(std::vector<std::string> command, const std::filesystem::path& log);
  ~TestProcess();
  TestProcess(TestProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  TestProcess& operator=(TestProcess&&) = delete;
  void signal(int number) const;
  void kill();
  // Whether it is still running.
  bool runs() const;

 private:
  pid_t pid_ = -1;
};

int free_port();

class MooncakeCluster {
 public:
  // `lease`: for how long the master protects what was looked at, in milliseconds.
  explicit MooncakeCluster(int lease = 5000);

  // Starting waits until they take part.
  void start_master();
  void start_holder();
  TestProcess& master() { return *master_; }
  TestProcess& holder() { return *holder_; }

  std::string address() const { return "127.0.0.1:" + std::to_string(master_port_); }
  // Of a store that is quick to try again.
  MooncakeStoreOptions options() const;

  static std::filesystem::path python();

 private:
  static std::filesystem::path program(const char* name);
  template <typename Start, typename IsThere>
  static void start(std::optional<TestProcess>& process, Start start, IsThere is_there);
  TemporaryDirectory directory_;
  const int lease_;
  const int master_port_ = free_port();
  std::optional<TestProcess> master_;
  std::optional<TestProcess> holder_;
};

// One that the tests of this program share; each has its own prefix for keys.
MooncakeCluster& shared_cluster();
std::string fresh_prefix();

// Puts something; again and again until the cluster takes it.
bool takes_value(EmbeddingStore& store);
bool takes_values(EmbeddingStore& store);

}  // namespace vitrove::testing
