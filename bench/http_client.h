// A blocking HTTP client of a few lines, so that a benchmark of a server does not measure a client
// library: one keep-alive connection, replies read into one buffer and thrown away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vitrove::bench {

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to the server under test");
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~HttpClient() { ::close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a whole request; answers the length of the reply's body. Throws unless it is a 200.
  std::size_t exchange(std::string_view request) {
    send(request);
    std::size_t have = 0;
    std::size_t end = std::string_view::npos;
    while (end == std::string_view::npos) {
      have += receive(have);
      end = std::string_view(buffer_.data(), have).find("\r\n\r\n");
    }
    const std::string_view head(buffer_.data(), end + 2);
    if (!head.starts_with("HTTP/1.1 200")) {
      throw std::runtime_error(std::string(buffer_.data(), have));
    }
    const std::size_t length = content_length(head);
    const std::size_t whole = end + 4 + length;
    // The rest goes to the same place again and again: a client that computes with the rows reads
    // them once, too.
    for (std::size_t got = have; got < whole;) {
      got += receive(0);
    }
    return length;
  }

 private:
  void send(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) throw std::runtime_error("the server under test hung up");
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::size_t receive(std::size_t at) {
    const auto got = ::recv(fd_, buffer_.data() + at, buffer_.size() - at, 0);
    if (got <= 0) throw std::runtime_error("the server under test hung up");
    return static_cast<std::size_t>(got);
  }

  static std::size_t content_length(std::string_view head) {
    const auto at = head.find("\r\nContent-Length: ");
    if (at == std::string_view::npos) throw std::runtime_error("a reply without a length");
    return std::stoull(std::string(head.substr(at + 18, 20)));
  }

  int fd_;
  std::vector<char> buffer_ = std::vector<char>(256 * 1024);
};

inline std::string http_get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: bench\r\n\r\n";
}

// `more_fields`: whole lines of the head.
inline std::string http_post(std::string_view target, const std::string& body,
                             const std::string& more_fields = {}) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: bench\r\n" + more_fields +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace vitrove::bench
