// Real redis-server processes for tests: on ports of their own, in directories of their own, gone
// with the test.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "contract/temporary_directory.h"
#include "stores/redis/resp.h"
#include "vitrove/redis_store.h"

namespace vitrove::testing {

int free_port();

// Polls until it holds; false when that takes longer than a minute.
bool eventually(const std::function<bool()>& holds);

class RedisServer {
 public:
  // `arguments` go to redis-server, after those for its port and directory.
  // With a password, the default user has to log in.
  explicit RedisServer(std::vector<std::string> arguments = {}, std::string password = {},
                       std::string configuration_file = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_; }
  // Options of a store in it, with short pauses for failures.
  RedisStoreOptions options() const;

  void start();   // on the same port
  void kill();    // SIGKILL, and everything is lost
  void freeze();  // SIGSTOP
  void thaw();    // SIGCONT
  bool is_running() const { return pid_ > 0; }

  // The answer to a command on a connection of its own, as its user. Throws when there is none.
  redis::Reply ask(std::initializer_list<std::string_view> words) const;
  std::string info(std::string_view field) const;

 private:
  void wait_until_it_answers() const;

  const std::vector<std::string> arguments_;
  const std::string password_;
  const std::string configuration_file_;
  TemporaryDirectory directory_;
  int port_ = free_port();
  pid_t pid_ = -1;
};

// A certificate authority, a server's certificate for 127.0.0.1, and files with them.
class TestCertificates {
 public:
  TestCertificates();
  std::string ca() const { return file("ca.crt"); }
  std::string certificate() const { return file("server.crt"); }
  std::string key() const { return file("server.key"); }
  // Arguments of a server that speaks TLS on this port.
  std::vector<std::string> arguments(int tls_port) const;

 private:
  std::string file(const char* name) const { return (directory_.path() / name).string(); }
  TemporaryDirectory directory_;
};

// Three masters that share the slots.
class RedisCluster {
 public:
  RedisCluster() : RedisCluster("", nullptr) {}
  // Clients have to log in, and use TLS beside the plain port of ask().
  RedisCluster(const std::string& password, const TestCertificates& certificates)
      : RedisCluster(password, &certificates) {}

  RedisServer& server(std::size_t index) { return *servers_.at(index); }
  RedisStoreOptions options() const;
  void flush();
  // The server that serves the slot now, and its identity in the cluster.
  std::size_t owner_of(std::uint16_t slot);
  std::string id_of(std::size_t index);
  void wait_until_whole();

  // Servers hear of each other's moves a little later. Whoever moves a slot before that gives it an
  // epoch that another has, too: one of them takes the slot back, and its keys are deleted.
  void wait_until_agreed();

  // The stages of moving a slot and its keys. The first and the last end when all agree.
  void begin_move(std::uint16_t slot, std::size_t from, std::size_t to);
  void move_key(const std::string& name, std::size_t from, std::size_t to);
  void end_move(std::uint16_t slot, std::size_t to);

 private:
  RedisCluster(const std::string& password, const TestCertificates* certificates);
  int cluster_port(std::size_t index);
  std::string view_of(std::size_t index);  // who has which slots, and the epoch

  const std::string password_;
  std::string ca_;
  std::vector<int> tls_ports_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

}  // namespace vitrove::testing
