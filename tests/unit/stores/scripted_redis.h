// A "Redis" that answers what a test likes.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/unique_fd.h"
#include "stores/redis/resp.h"
#include "vitrove/redis_store.h"

namespace vitrove::testing {

inline std::string bulk(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string(bytes) + "\r\n";
}

// Answers each command with the bytes that `script` makes of it; nothing hangs up. What belongs to
// the greeting is answered as a server would.
class ScriptedRedis {
 public:
  using Words = std::vector<std::string>;
  using Script = std::function<std::optional<std::string>(const Words&)>;

  explicit ScriptedRedis(Script script, std::size_t step = 1 << 20)
      : script_(std::move(script)), step_(step) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.get(), any, size) != 0 || ::listen(listener_.get(), 64) != 0 ||
        ::getsockname(listener_.get(), any, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
  }
  ~ScriptedRedis() {
    acceptor_.request_stop();
    acceptor_.join();
    talks_.clear();
  }

  // A SET is refused as soon as its first bytes are there; what follows on that connection is not
  // understood, and not even read before read_on().
  void refuse_puts_early() { is_hasty_ = true; }
  void read_on() { reads_on_ = true; }
  // Connections that are open break at the next command that is no part of a greeting.
  void break_open_connections() { broken_ = accepted_.load(); }
  int accepted() const { return accepted_; }
  bool has_ended() const { return has_ended_; }
  std::string unread_end() {
    std::lock_guard lock(mutex_);
    return unread_end_;
  }

  RedisStoreOptions options() const {
    RedisStoreOptions options;
    options.servers = {{"127.0.0.1", port_}};
    options.timeout = std::chrono::seconds(20);
    options.connect_timeout = std::chrono::seconds(20);
    return options;
  }

 private:
  void accept_all(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!is_readable(listener_.get())) continue;
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) continue;
      const int number = accepted_++;
      talks_.emplace_back(
          [this, socket, number](const std::stop_token& end) { talk(socket, number, end); });
    }
  }

  static bool is_readable(int socket) {
    pollfd awaited{socket, POLLIN, 0};
    return ::poll(&awaited, 1, 20) > 0;
  }

  void talk(int raw, int number, const std::stop_token& end) {
    const UniqueFd socket(raw);
    redis::ReplyBuilder builder;  // commands are arrays of strings, too
    std::string held;
    while (!end.stop_requested()) {
      if (!is_readable(socket.get())) continue;
      std::array<char, 65536> buffer;
      const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) return;
      held.append(buffer.data(), static_cast<std::size_t>(count));
      if (is_hasty_ && held.find("\r\nSET\r\n") != held.npos) {
        say(socket.get(), "-ERR no\r\n");
        keep_the_end(socket.get(), end);
        return;
      }
      std::string_view rest = held;
      while (!rest.empty() && builder.feed(rest) == redis::Parsed::complete) {
        Words words;
        for (const redis::Reply& word : builder.take().elements) words.push_back(word.text);
        const auto answer = answer_to(words, number);
        if (!answer || !say(socket.get(), *answer)) return;
      }
      held = std::string(rest);
    }
  }

  void keep_the_end(int socket, const std::stop_token& end) {
    std::string last;
    while (!end.stop_requested()) {
      if (!reads_on_ || !is_readable(socket)) {
        std::this_thread::yield();
        continue;
      }
      std::array<char, 65536> buffer;
      const ssize_t count = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      last.assign(buffer.data(), static_cast<std::size_t>(count));
      std::lock_guard lock(mutex_);
      unread_end_ = last;
    }
    has_ended_ = true;
  }

  std::optional<std::string> answer_to(const Words& words, int connection) {
    if (words[0] == "PING") return "+PONG\r\n";
    if (words[0] == "HELLO" || words[0] == "CONFIG" || words[0] == "INFO") {
      return "-ERR unknown command\r\n";
    }
    if (connection < broken_) return std::nullopt;
    return script_(words);
  }

  bool say(int socket, std::string_view bytes) const {
    while (!bytes.empty()) {
      const std::size_t count = std::min(step_, bytes.size());
      if (::send(socket, bytes.data(), count, MSG_NOSIGNAL) != static_cast<ssize_t>(count)) {
        return false;
      }
      bytes.remove_prefix(count);
    }
    return true;
  }

  const Script script_;
  const std::size_t step_;
  std::atomic<int> accepted_{0};
  std::atomic<int> broken_{0};
  std::atomic<bool> is_hasty_{false};
  std::atomic<bool> reads_on_{false};
  std::atomic<bool> has_ended_{false};
  std::mutex mutex_;
  std::string unread_end_;
  UniqueFd listener_;
  int port_ = 0;
  std::vector<std::jthread> talks_;
  std::jthread acceptor_;
};

}  // namespace vitrove::testing
