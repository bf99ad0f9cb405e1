// One request of libcurl, from the checks of its sockets to the end of its body.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "media/url_policy.h"
#include "vitrove/fetch.h"

namespace vitrove {

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, FreeList>;

// What happened, for the fetcher to judge.
enum class TransferEnd : std::uint8_t {
  complete,   // an answer was read to its end; `status` tells which
  denied,     // an address that must not be reached
  too_large,  // the body passed the limit; what came of it is dropped
  cancelled,
  overdue,
  failed,  // `code` tells how
};

struct TransferResult {
  TransferEnd end = TransferEnd::failed;
  CURLcode code = CURLE_OK;
  long status = 0;
  std::string location;  // absolute, of a redirect
  std::vector<std::byte> body;
};

// Not thread-safe; one at a time. What it is given by reference outlives it.
class HttpTransfer {
 public:
  HttpTransfer(CURL* easy, CURLM* multi, const FetchPolicy& policy, const HostRules& rules,
               const BytesWanted& wanted)
      : easy_(easy), multi_(multi), policy_(policy), rules_(rules), wanted_(wanted) {}

  // Throws what `wanted` throws.
  TransferResult run(const HttpUrl& url, const std::vector<std::string>& resolve,
                     std::chrono::steady_clock::time_point end, const std::stop_token& cancel);

 private:
  void set_up(const HttpUrl& url);
  void perform(std::chrono::steady_clock::time_point end, const std::stop_token& cancel);
  bool take_result();
  TransferEnd judge() const;

  bool accept(const std::byte* data, std::size_t size);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static curl_socket_t on_open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);

  CURL* easy_;
  CURLM* multi_;
  const FetchPolicy& policy_;
  const HostRules& rules_;
  const BytesWanted& wanted_;
  CurlList headers_;
  CurlList resolve_;
  TransferResult result_;
  std::size_t ignored_bytes_ = 0;
  bool is_denied_ = false;
  bool is_too_large_ = false;
  bool is_unwanted_ = false;    // the long body of an answer that is an error anyway
  std::exception_ptr refused_;  // thrown where libcurl must not see it
};

}  // namespace vitrove
