// HTTP messages as plain values, so that routes can be called without a socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrove {

struct Route;

struct HttpRequest {
  std::string method;  // "GET", ...; what HEAD asks for is handled as GET
  std::string target;  // as received
  std::string path;    // percent-decoded, without the query; empty when the target is malformed
  std::map<std::string, std::string> query;
  std::string authorization;
  bool is_from_page = false;  // a browser says that a web page of some other site sends it
  std::string request_id;     // X-Request-Id, when usable
  std::optional<std::uint64_t> declared_body;  // Content-Length, where there is one
  bool is_chunked = false;                     // a body of a length that is not told
  std::string body;
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel;  // the client has gone, or it is too late

  // Filled in by Router::admit.
  const Route* route = nullptr;
  std::string tenant;
  bool is_admin = false;
};

// What a request log line says beyond status and time.
struct ReplyNote {
  std::uint32_t items = 0;
  std::string sources;  // "local:2 encoded:1"
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  // Sent after `body`, straight from where they lie; `owner` keeps them there.
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<void> owner;
  std::string req_id;
  bool close = false;  // end the connection after this reply
  ReplyNote note;

  std::uint64_t content_length() const {
    std::uint64_t bytes = body.size();
    for (const auto& part : parts) bytes += part.size();
    return bytes;
  }
};

// Takes the one reply to a request. Any thread; calls after the first are ignored.
using Responder = std::function<void(HttpResponse)>;

// Splits a request target: decodes the path, and takes the query apart. False when it is malformed.
bool parse_target(std::string_view target, HttpRequest& request);

// A usable request id: 1 to 256 printable ASCII characters.
bool is_valid_req_id(std::string_view id);
std::string make_req_id();

std::string_view reason_phrase(int status);

}  // namespace vitrove
