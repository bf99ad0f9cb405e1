// HTTP by hand over a socket, for clients that misbehave.
#pragma once

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/unique_fd.h"
#include "support.h"

namespace vitrove::test {

struct RawReply {
  int status = 0;
  std::string head;
  std::string body;

  std::string header(std::string_view name) const {
    const auto at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return {};
    const auto begin = at + 4 + name.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  json parsed() const { return json::parse(body); }
};

class RawClient {
 public:
  // A small receive buffer makes the server feel how slowly the client reads.
  explicit RawClient(std::uint16_t port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer != 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const timeval limit{patience.count(), 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }
  void close() { fd_.reset(); }
  void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }

  // What cannot be sent is not: the server may have hung up, as it should.
  void send(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // At most `size` bytes; fewer at the end of the connection.
  std::string read(std::size_t size) {
    while (input_.size() < size && fill()) {
    }
    const auto taken = input_.substr(0, size);
    input_.erase(0, taken.size());
    return taken;
  }

  // True once something has come; it stays there to be read.
  bool has_input() { return !input_.empty() || fill(); }
  bool is_closed() { return read(1).empty(); }

  RawReply reply(bool has_body = true) {
    RawReply reply;
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return reply;
    }
    reply.head = input_.substr(0, end + 2);
    input_.erase(0, end + 4);
    reply.status = std::stoi(reply.head.substr(9, 3));
    const std::string length = reply.header("Content-Length");
    if (has_body && !length.empty()) reply.body = read(std::stoul(length));
    return reply;
  }

 private:
  bool fill() {
    char buffer[16384];
    const auto got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
    if (got <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd fd_;
  bool connected_ = false;
  std::string input_;
};

inline std::string http_request(std::string_view method, std::string_view target,
                                std::string_view body = {}, std::string_view fields = {}) {
  std::string text = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n";
  text.append(fields);
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + std::string(body);
}

inline std::string encode_text(const json& items, const json& more = json::object(),
                               std::string_view fields = {}) {
  json body = {{"mm_items", items}};
  body.update(more);
  return http_request("POST", "/encode", body.dump(), fields);
}

}  // namespace vitrove::test
