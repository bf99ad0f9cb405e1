// The command line's HTTP client, on libcurl. One object a thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "vitrove/error.h"

namespace vitrove::cli {

struct HttpReply {
  long status = 0;
  std::string body;
};

class HttpClient {
 public:
  // `base`: "http://127.0.0.1:8090". An empty key sends no Authorization header.
  HttpClient(std::string base, std::string api_key);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Throws Error{unavailable} when no answer came.
  HttpReply request(const std::string& method, const std::string& path, std::string_view body = {});

  // Like request(), but an answer of 400 or more is an Error with the server's message.
  std::string expect(const std::string& method, const std::string& path,
                     std::string_view body = {});

  // The same, of a reply that has to be a JSON object.
  nlohmann::json expect_json(const std::string& method, const std::string& path,
                             std::string_view body = {});

  const std::string& base() const { return base_; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string base_;
  std::string api_key_;
  std::chrono::milliseconds timeout_{120'000};
};

// `text` as a value in a query: everything but letters, digits and "-._~" is percent-encoded.
std::string query_value(std::string_view text);

// What is wrong with the address of a server, for options; empty when it is good.
std::string server_address(const std::string& text);

// Error{unavailable}: something answers there that is no Vitrove server. `how`: "with ...".
Error not_vitrove(const std::string& base, const std::string& how);

}  // namespace vitrove::cli
