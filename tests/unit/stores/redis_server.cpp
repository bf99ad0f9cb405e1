#include "redis_server.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "stores/redis/hash_slot.h"

namespace vitrove::testing {
namespace {

constexpr auto patience = std::chrono::seconds(60);

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

// A blocking connection that speaks the protocol.
class Talk {
 public:
  Talk(int port, const std::string& password)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{10, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const sockaddr_in address = loopback(port);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {
      throw std::runtime_error("redis-server does not listen");
    }
    if (!password.empty()) ask({"AUTH", password});
  }

  redis::Reply ask(std::initializer_list<std::string_view> words) {
    const std::string bytes = redis::encode_command(words);
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != std::ssize(bytes)) {
      throw std::runtime_error("redis-server takes no command");
    }
    while (true) {
      std::string_view rest = received_;
      const auto parsed = builder_.feed(rest);
      received_ = std::string(rest);
      if (parsed == redis::Parsed::complete) return builder_.take();
      if (parsed == redis::Parsed::malformed) throw std::runtime_error("not RESP");
      std::array<char, 65536> buffer;
      const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) throw std::runtime_error("redis-server does not answer");
      received_.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

 private:
  UniqueFd socket_;
  std::string received_;
  redis::ReplyBuilder builder_;
};

pid_t spawn(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) ::dup2(nowhere, standard);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void wait_for(const std::function<bool()>& holds, const char* what) {
  if (!eventually(holds)) throw std::runtime_error(what);
}

}  // namespace

bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

int free_port() {
  const UniqueFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

RedisServer::RedisServer(std::vector<std::string> arguments, std::string password,
                         std::string configuration_file)
    : arguments_(std::move(arguments)),
      password_(std::move(password)),
      configuration_file_(std::move(configuration_file)) {
  start();
}

RedisServer::~RedisServer() { kill(); }

void RedisServer::start() {
  std::vector<std::string> words = {"redis-server"};
  if (!configuration_file_.empty()) words.push_back(configuration_file_);
  words.insert(words.end(), {"--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir",
                             directory_.path(), "--logfile", "server.log", "--save", "",
                             "--appendonly", "no", "--daemonize", "no"});
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  if (!password_.empty()) words.insert(words.end(), {"--requirepass", password_});
  pid_ = spawn(words);
  wait_until_it_answers();
}

void RedisServer::wait_until_it_answers() const {
  const auto answers = [this] {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      std::ifstream log(directory_.path() / "server.log");
      std::stringstream text;
      text << log.rdbuf();
      throw std::runtime_error("redis-server has ended (is it in PATH? ./run puts it there): " +
                               text.str());
    }
    try {
      return !Talk(port_, password_).ask({"PING"}).text.empty();
    } catch (const std::runtime_error&) {
      return false;
    }
  };
  wait_for(answers, "redis-server does not answer");
}

void RedisServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void RedisServer::freeze() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void RedisServer::thaw() { ::kill(pid_, SIGCONT); }

RedisStoreOptions RedisServer::options() const {
  RedisStoreOptions options;
  options.servers = {{"127.0.0.1", port_}};
  options.timeout = std::chrono::seconds(20);
  options.connect_timeout = std::chrono::seconds(20);
  options.password = password_;
  return options;
}

redis::Reply RedisServer::ask(std::initializer_list<std::string_view> words) const {
  return Talk(port_, password_).ask(words);
}

std::string RedisServer::info(std::string_view field) const {
  const std::string text = ask({"INFO", "everything"}).text;
  const std::string start = "\n" + std::string(field) + ":";
  const std::size_t at = text.find(start);
  if (at == std::string::npos) return {};
  const std::size_t from = at + start.size();
  return text.substr(from, text.find('\r', from) - from);
}

RedisCluster::RedisCluster(const std::string& password, const TestCertificates* certificates)
    : password_(password), ca_(certificates == nullptr ? "" : certificates->ca()) {
  constexpr std::array<std::string_view, 4> bounds = {"0", "5461", "10923", "16384"};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::string> words = {"--cluster-enabled",
                                      "yes",
                                      "--cluster-port",
                                      std::to_string(free_port()),
                                      "--cluster-node-timeout",
                                      "5000",
                                      "--cluster-require-full-coverage",
                                      "no"};
    if (certificates != nullptr) {
      tls_ports_.push_back(free_port());
      const auto tls = certificates->arguments(tls_ports_.back());
      words.insert(words.end(), tls.begin(), tls.end());
      words.insert(words.end(), {"--tls-cluster", "yes"});
    }
    servers_.push_back(std::make_unique<RedisServer>(words, password));
    const std::string last = std::to_string(std::stoi(std::string(bounds[i + 1])) - 1);
    servers_.back()->ask({"CLUSTER", "ADDSLOTSRANGE", bounds[i], last});
    servers_.back()->ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i == 0) continue;
    const std::string bus = server(0).ask({"CONFIG", "GET", "cluster-port"}).elements.at(1).text;
    servers_.back()->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(cluster_port(0)), bus});
  }
  wait_until_whole();
}

int RedisCluster::cluster_port(std::size_t index) {
  return tls_ports_.empty() ? server(index).port() : tls_ports_.at(index);
}

void RedisCluster::begin_move(std::uint16_t slot, std::size_t from, std::size_t to) {
  wait_until_agreed();
  const std::string number = std::to_string(slot);
  server(to).ask({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(from)});
  server(from).ask({"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(to)});
}

void RedisCluster::move_key(const std::string& name, std::size_t from, std::size_t to) {
  const std::string port = std::to_string(cluster_port(to));
  const redis::Reply reply =
      password_.empty()
          ? server(from).ask({"MIGRATE", "127.0.0.1", port, name, "0", "10000"})
          : server(from).ask({"MIGRATE", "127.0.0.1", port, name, "0", "10000", "AUTH", password_});
  if (reply.text != "OK") throw std::runtime_error("MIGRATE: " + reply.text);
}

void RedisCluster::end_move(std::uint16_t slot, std::size_t to) {
  const std::string id = id_of(to);
  server(to).ask({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
  for (const auto& one : servers_) {
    one->ask({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id});
  }
  wait_until_agreed();
}

std::string RedisCluster::view_of(std::size_t index) {
  std::set<std::string> lines;
  for (const redis::Reply& range : server(index).ask({"CLUSTER", "SLOTS"}).elements) {
    lines.insert(std::to_string(range.elements.at(0).number) + "-" +
                 std::to_string(range.elements.at(1).number) + " " +
                 std::to_string(range.elements.at(2).elements.at(1).number));
  }
  std::istringstream info(server(index).ask({"CLUSTER", "INFO"}).text);
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("cluster_current_epoch:")) lines.insert(line);
  }
  std::string view;
  for (const std::string& line : lines) view += line + '\n';
  return view;
}

void RedisCluster::wait_until_agreed() {
  const auto agree = [this] {
    const std::string first = view_of(0);
    return view_of(1) == first && view_of(2) == first;
  };
  wait_for(agree, "the servers of the cluster do not agree");
}

void RedisCluster::wait_until_whole() {
  const auto is_whole = [this] {
    for (const auto& server : servers_) {
      const std::string text = server->ask({"CLUSTER", "INFO"}).text;
      if (text.find("cluster_state:ok") == std::string::npos ||
          text.find("cluster_slots_ok:16384") == std::string::npos ||
          text.find("cluster_known_nodes:3") == std::string::npos) {
        return false;
      }
    }
    return true;
  };
  wait_for(is_whole, "the cluster does not become whole");
}

RedisStoreOptions RedisCluster::options() const {
  RedisStoreOptions options = servers_[1]->options();
  options.cluster = true;
  if (tls_ports_.empty()) return options;
  options.tls = true;
  options.tls_ca = ca_;
  options.servers = {{"127.0.0.1", tls_ports_[1]}};
  return options;
}

void RedisCluster::flush() {
  for (const auto& server : servers_) server->ask({"FLUSHALL"});
}

std::string RedisCluster::id_of(std::size_t index) {
  return server(index).ask({"CLUSTER", "MYID"}).text;
}

std::size_t RedisCluster::owner_of(std::uint16_t slot) {
  const redis::Reply ranges = server(0).ask({"CLUSTER", "SLOTS"});
  for (const redis::Reply& range : ranges.elements) {
    if (slot < range.elements.at(0).number || slot > range.elements.at(1).number) continue;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (server(i).port() == range.elements.at(2).elements.at(1).number) return i;
    }
  }
  throw std::runtime_error("nobody serves the slot");
}

TestCertificates::TestCertificates() {
  const std::string dir = directory_.path();
  const std::string quiet = " >/dev/null 2>&1";
  const std::string new_key = "openssl ecparam -name prime256v1 -genkey -noout -out " + dir;
  run(new_key + "/ca.key" + quiet);
  run("openssl req -x509 -new -key " + dir + "/ca.key -subj /CN=test-ca -days 2 -out " + ca() +
      quiet);
  run(new_key + "/server.key" + quiet);
  run("openssl req -new -key " + key() + " -subj /CN=server -out " + dir + "/server.csr" + quiet);
  std::ofstream(directory_.path() / "extensions") << "subjectAltName=IP:127.0.0.1\n";
  run("openssl x509 -req -in " + dir + "/server.csr -CA " + ca() + " -CAkey " + dir +
      "/ca.key -CAcreateserial -days 2 -extfile " + dir + "/extensions -out " + certificate() +
      quiet);
}

std::vector<std::string> TestCertificates::arguments(int tls_port) const {
  return {"--tls-port",         std::to_string(tls_port),
          "--tls-ca-cert-file", ca(),
          "--tls-cert-file",    certificate(),
          "--tls-key-file",     key(),
          "--tls-auth-clients", "optional"};
}

}  // namespace vitrove::testing
