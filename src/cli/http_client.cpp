#include "cli/http_client.h"

#include <algorithm>
#include <array>

#include <curl/curl.h>
#include <nlohmann/json.hpp>

#include "vitrove/embedding_store_factory.h"

namespace vitrove::cli {
namespace {

std::size_t append_body(char* data, std::size_t size, std::size_t count, void* out) {
  static_cast<std::string*>(out)->append(data, size * count);
  return size * count;
}

ErrorCode code_of(long status) {
  switch (status) {
    case 401:
      return ErrorCode::unauthorized;
    case 403:
      return ErrorCode::forbidden;
    case 404:
      return ErrorCode::not_found;
    case 413:
      return ErrorCode::too_large;
    case 415:
      return ErrorCode::unsupported_format;
    case 424:
      return ErrorCode::media_fetch_failed;
    case 429:
      return ErrorCode::queue_full;
    case 503:
      return ErrorCode::unavailable;
    case 504:
      return ErrorCode::deadline_exceeded;
    default:
      return status < 500 ? ErrorCode::invalid_argument : ErrorCode::internal;
  }
}

// What the address may say before its host.
std::string_view scheme_of(std::string_view address) {
  const std::size_t end = address.find("://");
  return end == std::string_view::npos ? std::string_view() : address.substr(0, end);
}

// These mean what they say, whoever says them: something before the server, perhaps.
bool is_plain_status(long status) {
  constexpr std::array known = {401L, 403L, 413L, 429L, 502L, 503L, 504L};
  return std::ranges::find(known, status) != known.end();
}

[[noreturn]] void throw_reply_error(const std::string& base, const HttpReply& reply) {
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  const bool is_ours = body.is_object() && body.contains("error") && body["error"].is_object();
  const std::string status = std::to_string(reply.status);
  if (is_ours)
    throw Error(code_of(reply.status), body["error"].value("message", "an error " + status));
  if (is_plain_status(reply.status))
    throw Error(code_of(reply.status), "the server answered " + status);
  throw not_vitrove(base, "with an error " + status + " of its own");
}

}  // namespace

Error not_vitrove(const std::string& base, const std::string& how) {
  return Error(ErrorCode::unavailable,
               redact_url(base) + " answers " + how + ": no Vitrove server; is the address right?");
}

std::string server_address(const std::string& text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::string_view scheme = scheme_of(text);
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) return "it is blank: a server's address is expected";
  if (begin > 0) return "the address begins with a blank or a new line: take that away";
  if (text.find_last_not_of(blanks) + 1 < text.size())
    return "the address ends with a blank or a new line: take that away";
  if (text.find_first_of(blanks) != std::string::npos)
    return "one server's address is expected, and not several words: give it with --server";
  if (text.starts_with("http://") || text.starts_with("https://")) return {};
  if (scheme.empty() && text.find('/') == std::string::npos) return {};
  return "a server's address is expected, such as http://127.0.0.1:8090, and not " +
         redact_url(text);
}

struct HttpClient::Handle {
  Handle() {
    if (curl == nullptr) throw Error(ErrorCode::unavailable, "libcurl cannot be used here");
  }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* curl = curl_easy_init();
};

HttpClient::HttpClient(std::string base, std::string api_key)
    : handle_(std::make_unique<Handle>()), base_(std::move(base)), api_key_(std::move(api_key)) {
  while (base_.ends_with('/')) base_.pop_back();
  if (base_.find("://") == std::string::npos) base_ = "http://" + base_;
}

HttpClient::~HttpClient() = default;

HttpReply HttpClient::request(const std::string& method, const std::string& path,
                              std::string_view body) {
  CURL* curl = handle_->curl;
  HttpReply reply;
  const std::string url = base_ + path;
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(
      [this] {
        curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
        list = curl_slist_append(list, "Expect:");
        if (!api_key_.empty())
          list = curl_slist_append(list, ("Authorization: Bearer " + api_key_).c_str());
        return list;
      }(),
      &curl_slist_free_all);

  curl_easy_reset(curl);
  std::array<char, CURL_ERROR_SIZE> reason{};
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 5'000L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_.count()));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &append_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  if (method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data() == nullptr ? "" : body.data());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  const CURLcode result = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (result != CURLE_OK)
    throw Error(ErrorCode::unavailable, "no answer from " + redact_url(base_),
                std::string(reason[0] == '\0' ? curl_easy_strerror(result) : reason.data()) +
                    "; does a server run there?");
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

std::string HttpClient::expect(const std::string& method, const std::string& path,
                               std::string_view body) {
  HttpReply reply = request(method, path, body);
  if (reply.status >= 400) throw_reply_error(base_, reply);
  return std::move(reply.body);
}

nlohmann::json HttpClient::expect_json(const std::string& method, const std::string& path,
                                       std::string_view body) {
  auto reply = nlohmann::json::parse(expect(method, path, body), nullptr, false);
  if (!reply.is_object()) throw not_vitrove(base_, "with something that is no JSON object");
  return reply;
}

std::string query_value(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  constexpr std::string_view plain = "-._~";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_alphanumeric || plain.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return result;
}

}  // namespace vitrove::cli
