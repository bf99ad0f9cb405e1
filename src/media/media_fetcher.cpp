#include "media/ascii.h"
#include "media/data_url.h"
#include "media/http_fetcher.h"
#include "media/local_file.h"
#include "vitrove/error.h"
#include "vitrove/fetch.h"

namespace vitrove {

struct MediaFetcher::Impl {
  explicit Impl(FetchPolicy given)
      : policy(std::move(given)), http(policy), files(policy.allowed_local_media_path) {}

  FetchPolicy policy;
  HttpFetcher http;
  LocalFiles files;
};

MediaFetcher::MediaFetcher(FetchPolicy policy) : impl_(std::make_unique<Impl>(std::move(policy))) {}

MediaFetcher::~MediaFetcher() = default;

const FetchPolicy& MediaFetcher::policy() const { return impl_->policy; }

std::vector<std::byte> MediaFetcher::fetch(std::string_view url,
                                           std::chrono::steady_clock::time_point deadline,
                                           std::stop_token cancel,
                                           const BytesWanted& wanted) const {
  if (is_data_url(url)) return decode_data_url(url, impl_->policy.max_item_bytes);
  if (starts_ignoring_case(url, "http:") || starts_ignoring_case(url, "https:")) {
    return impl_->http.fetch(url, deadline, cancel, wanted);
  }
  if (starts_ignoring_case(url, "file:")) {
    return impl_->files.read(url, impl_->policy.max_item_bytes, wanted);
  }
  throw Error(ErrorCode::invalid_argument, "media must be given as a data:, http(s): or file: URL");
}

std::string redact_media_url(std::string_view url) {
  if (is_data_url(url)) return "data:...";
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t slashes = url.find("://");
  // Not understood, so nothing of it is known to be harmless.
  if (slashes == std::string_view::npos) return "(malformed URL)";
  const std::size_t host = slashes + 3;
  const std::size_t path = std::min(url.find('/', host), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)).append(url.substr(at + 1));
}

}  // namespace vitrove
