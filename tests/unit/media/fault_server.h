// An HTTP origin on loopback that misbehaves as told.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace vitrove::test {

// One request as the handler sees it.
class Exchange {
 public:
  Exchange(int fd, std::string head) : fd_(fd), head_(std::move(head)) {}

  const std::string& head() const { return head_; }
  std::string path() const {
    const std::size_t from = head_.find(' ') + 1;
    return head_.substr(from, head_.find(' ', from) - from);
  }

  // False when the other side is gone.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void reply(std::string_view status, std::string_view body, std::string_view headers = {}) {
    send("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(headers) + "\r\n" + std::string(body));
  }
  void redirect(std::string_view to, std::string_view status = "302 Found") {
    reply(status, "moved", "Location: " + std::string(to) + "\r\n");
  }
  // Blocks until the other side or the server gives up.
  void wait_for_end() {
    char byte;
    while (::recv(fd_, &byte, 1, 0) > 0) {
    }
  }
  void close() { ::shutdown(fd_, SHUT_RDWR); }
  // With a RST instead of a FIN.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    is_reset_ = true;
  }
  bool is_reset() const { return is_reset_; }

 private:
  int fd_;
  std::string head_;
  bool is_reset_ = false;
};

class FaultServer {
 public:
  using Handler = std::function<void(Exchange&)>;

  explicit FaultServer(Handler handler) : handler_(std::move(handler)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~FaultServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const Client& client : clients_) ::shutdown(client.fd, SHUT_RDWR);
    }
    for (Client& client : clients_) client.thread.join();
    for (const Client& client : clients_) ::close(client.fd);
  }

  std::string port() const { return std::to_string(port_); }
  std::string url(std::string_view path) const {
    return "http://127.0.0.1:" + port() + std::string(path);
  }
  int connections() const { return connections_; }
  int requests() const { return requests_; }
  // Request line and headers of the latest request.
  std::string last_head() const {
    const std::lock_guard lock(mutex_);
    return last_head_;
  }

 private:
  struct Client {
    int fd;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++connections_;
      const std::lock_guard lock(mutex_);
      clients_.push_back({fd, std::thread([this, fd] { serve(fd); })});
    }
  }

  void serve(int fd) {
    std::string input;
    char buffer[4096];
    for (;;) {
      const std::size_t end = input.find("\r\n\r\n");
      if (end != std::string::npos) {
        ++requests_;
        Exchange exchange(fd, input.substr(0, end + 2));
        input.erase(0, end + 4);
        {
          const std::lock_guard lock(mutex_);
          last_head_ = exchange.head();
        }
        handler_(exchange);
        if (exchange.is_reset()) return reset(fd);
        continue;
      }
      const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      input.append(buffer, static_cast<std::size_t>(count));
    }
    ::shutdown(fd, SHUT_RDWR);
  }

  // Closing is what sends the RST; another descriptor takes the number's place until the end.
  static void reset(int fd) {
    const UniqueFd placeholder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::dup3(placeholder.get(), fd, O_CLOEXEC);
  }

  Handler handler_;
  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> requests_ = 0;
  mutable std::mutex mutex_;
  std::string last_head_;
  std::list<Client> clients_;
  std::thread acceptor_;
};

}  // namespace vitrove::test
