// http(s): URLs through libcurl.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "media/http_transfer.h"
#include "media/url_policy.h"
#include "vitrove/error.h"
#include "vitrove/fetch.h"

namespace vitrove {

class HttpFetcher {
 public:
  // `resolve` fixes addresses of names ("host:port:address", as curl's --resolve), for tests.
  explicit HttpFetcher(const FetchPolicy& policy, std::vector<std::string> resolve = {});
  ~HttpFetcher();

  std::vector<std::byte> fetch(std::string_view url, std::chrono::steady_clock::time_point deadline,
                               const std::stop_token& cancel, const BytesWanted& wanted = {}) const;

 private:
  using Clock = std::chrono::steady_clock;
  class Session;

  struct Budget {
    Clock::time_point end;
    bool is_callers;  // it is the caller's deadline that ends first
    std::stop_token cancel;
    const BytesWanted& wanted;
  };

  struct Failure {
    Error error;
    bool may_retry = false;
  };

  // Exactly one of the two is set.
  struct Outcome {
    std::vector<std::byte> body;
    std::optional<Failure> failure;
  };

  Outcome follow(HttpUrl url, const Budget& budget) const;
  HttpUrl parse_redirect(const std::string& location) const;
  std::optional<Failure> failure_of(const TransferResult& result, const HttpUrl& url,
                                    const Budget& budget) const;
  static Error overdue(const Budget& budget);

  std::unique_ptr<Session> borrow_session() const;
  void return_session(std::unique_ptr<Session> session) const;

  const FetchPolicy policy_;
  const HostRules rules_;
  const std::vector<std::string> resolve_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Session>> idle_;  // with their open connections
};

}  // namespace vitrove
