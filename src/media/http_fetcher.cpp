#include "media/http_fetcher.h"

#include <algorithm>
#include <condition_variable>
#include <new>

#include "media/http_transfer.h"

namespace vitrove {
namespace {

constexpr std::size_t max_idle_sessions = 16;
constexpr std::chrono::milliseconds first_pause{100};

// Faults of the way or of the moment, as against answers.
bool is_passing(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

const char* describe(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return "the media's origin could not be reached";
    case CURLE_OPERATION_TIMEDOUT:
      return "the media's origin took too long";
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
      return "no secure connection to the media's origin";
    default:
      return "the media's origin broke off or sent no proper answer";
  }
}

bool is_redirect(const TransferResult& result) {
  if (result.end != TransferEnd::complete || result.location.empty()) return false;
  const long status = result.status;
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Error fetch_error(const std::string& message, const std::string& detail) {
  return Error(ErrorCode::media_fetch_failed, message, detail);
}

// False when stopped.
bool pause(std::chrono::steady_clock::time_point until, const std::stop_token& cancel) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, cancel, until, [] { return false; });
  return !cancel.stop_requested();
}

}  // namespace

class HttpFetcher::Session {
 public:
  Session() : multi_(curl_multi_init()), easy_(curl_easy_init()) {
    if (!multi_ || !easy_) throw std::bad_alloc();
  }
  CURL* easy() { return easy_.get(); }
  CURLM* multi() { return multi_.get(); }

 private:
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::unique_ptr<CURL, FreeEasy> easy_;  // destroyed first
};

HttpFetcher::HttpFetcher(const FetchPolicy& policy, std::vector<std::string> resolve)
    : policy_(policy),
      rules_(policy.allowed_media_domains, policy.allow_private_media),
      resolve_(std::move(resolve)) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) throw Error(ErrorCode::internal, "libcurl cannot be initialised");
}

HttpFetcher::~HttpFetcher() = default;

std::unique_ptr<HttpFetcher::Session> HttpFetcher::borrow_session() const {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return std::make_unique<Session>();
}

void HttpFetcher::return_session(std::unique_ptr<Session> session) const {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < max_idle_sessions) idle_.push_back(std::move(session));
}

Error HttpFetcher::overdue(const Budget& budget) {
  if (budget.is_callers) return Error(ErrorCode::deadline_exceeded, "fetching media took too long");
  return fetch_error("the media's origin took too long", {});
}

std::vector<std::byte> HttpFetcher::fetch(std::string_view text, Clock::time_point deadline,
                                          const std::stop_token& cancel,
                                          const BytesWanted& wanted) const {
  const Clock::time_point ours = Clock::now() + policy_.total_timeout;
  const Budget budget{std::min(ours, deadline), deadline <= ours, cancel, wanted};
  std::chrono::milliseconds wait = first_pause;
  for (int attempt = 0;; ++attempt) {
    Outcome outcome = follow(parse_http_url(text, rules_), budget);
    if (!outcome.failure) return std::move(outcome.body);
    const Failure& failure = *outcome.failure;
    if (!failure.may_retry || attempt >= policy_.max_retries) throw failure.error;
    const Clock::time_point next = Clock::now() + wait;
    // No time for another try: what went wrong is the better answer.
    if (next >= budget.end) throw failure.error;
    if (!pause(next, cancel)) throw Error(ErrorCode::cancelled, "cancelled");
    wait *= 2;
  }
}

std::optional<HttpFetcher::Failure> HttpFetcher::failure_of(const TransferResult& result,
                                                            const HttpUrl& url,
                                                            const Budget& budget) const {
  switch (result.end) {
    case TransferEnd::cancelled:
      return Failure{Error(ErrorCode::cancelled, "cancelled")};
    case TransferEnd::overdue:
      return Failure{overdue(budget)};
    // As often and as long as for a name that is not there.
    case TransferEnd::denied:
      return Failure{not_reached("resolves to a private address: " + url.for_logs), true};
    case TransferEnd::too_large: {
      const std::string limit = std::to_string(policy_.max_item_bytes);
      return Failure{Error(ErrorCode::too_large,
                           "the item exceeds the limit of " + limit + " bytes", url.for_logs)};
    }
    case TransferEnd::failed: {
      const std::string detail = curl_easy_strerror(result.code) + (": " + url.for_logs);
      const bool is_unknown = result.code == CURLE_COULDNT_RESOLVE_HOST;
      if (is_unknown && !rules_.allows_private()) return Failure{not_reached(detail), true};
      return Failure{fetch_error(describe(result.code), detail), is_passing(result.code)};
    }
    case TransferEnd::complete:
      break;
  }
  if (result.status < 200 || result.status >= 300 || result.status == 206) {
    const std::string status = std::to_string(result.status);
    return Failure{fetch_error("the media's origin answered " + status, url.for_logs),
                   result.status >= 500};
  }
  if (result.body.empty()) {
    return Failure{fetch_error("the media's origin sent no data", url.for_logs)};
  }
  return std::nullopt;
}

// The same rules as for the first URL, but a malformed one is the origin's fault.
HttpUrl HttpFetcher::parse_redirect(const std::string& location) const {
  try {
    return parse_http_url(location, rules_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    throw fetch_error("the media's origin redirects to something else than http(s)", {});
  }
}

HttpFetcher::Outcome HttpFetcher::follow(HttpUrl url, const Budget& budget) const {
  std::unique_ptr<Session> session = borrow_session();
  for (int hop = 0; hop <= policy_.max_redirects; ++hop) {
    HttpTransfer transfer(session->easy(), session->multi(), policy_, rules_, budget.wanted);
    TransferResult result = transfer.run(url, resolve_, budget.end, budget.cancel);
    if (is_redirect(result)) {
      url = parse_redirect(result.location);
      continue;
    }
    return_session(std::move(session));
    std::optional<Failure> failure = failure_of(result, url, budget);
    return {std::move(result.body), std::move(failure)};
  }
  return {{}, Failure{fetch_error("too many redirects", url.for_logs)}};
}

}  // namespace vitrove
