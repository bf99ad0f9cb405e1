// MediaFetcher: from a media URL to the bytes behind it.
//
//  data:   all forms of RFC 2397: scheme and ";base64" in any case, any parameters, percent-encoded
//          data without ";base64", missing padding, line breaks and blanks inside base64. A bad
//          character is refused, never skipped, and so is an empty payload. The declared type is
//          ignored: content decides (B08).
//  http:, https:   fetched with libcurl under FetchPolicy. Only public addresses, unless
//          allow_private_media: the address is checked when the socket is opened, so that neither a
//          name that resolves anew nor an odd spelling gets round it, and each redirect is a new
//          URL under the same rules (B80). Proxies of the environment are not used, credentials in
//          URLs are refused. A body beyond the limit is an error, never a shorter body (B85).
//  file:   off unless allowed_local_media_path names a directory; then regular files below it only,
//          symbolic links included only where they stay below it. Missing and forbidden files get
//          the same answer (B82).
// Anything else, a bare path included, is invalid_argument.
//
// Errors: invalid_argument (400) malformed URL or payload; forbidden (403) not allowed by policy;
// not_found (404) file missing or not allowed; too_large (413); media_fetch_failed (424) origin
// answered 4xx (not retried), or 5xx, nothing, too slowly or brokenly after the retries;
// deadline_exceeded (504) when the caller's deadline, not ours, ran out; cancelled. Messages name
// no host, address or path (B87); detail() does, without credentials and query.
//
// Nothing is remembered between calls but open connections: no caching, no negative caching (B12,
// B27). Thread-safe; a call blocks its thread until it is done, and leaves at once when stopped.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace vitrove {

struct FetchPolicy {
  // Of one item, after base64 and percent-decoding.
  std::uint64_t max_item_bytes = std::uint64_t{64} << 20;

  // Hosts that may be fetched from; empty: all public ones. "cdn.example.com" is that host alone,
  // ".example.com" is example.com and everything below it. Holds for every redirect too. Being on
  // the list does not make a private address public. International names in their "xn--" form.
  std::vector<std::string> allowed_media_domains;

  // Loopback, private, link-local and other addresses that are not public.
  bool allow_private_media = false;

  // Directory that file: URLs may read below; empty: none.
  std::filesystem::path allowed_local_media_path;

  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds total_timeout{30'000};  // all redirects and retries together
  // Slower than this on average over low_speed_time is a failure.
  std::uint64_t low_speed_bytes_per_second = 1'024;
  std::chrono::seconds low_speed_time{10};
  int max_redirects = 5;
  int max_retries = 2;  // after 5xx, refused and broken connections, timeouts; never after 4xx
};

// Asked before an item takes memory, with the bytes it then holds in all; a try that is begun anew
// asks from the start again. Ends the fetch by throwing Error. Called on the fetching thread.
using BytesWanted = std::function<void(std::uint64_t)>;

class MediaFetcher {
 public:
  // Throws Error{invalid_argument} when allowed_local_media_path is no directory or a domain is
  // malformed.
  explicit MediaFetcher(FetchPolicy policy);
  ~MediaFetcher();
  MediaFetcher(const MediaFetcher&) = delete;
  MediaFetcher& operator=(const MediaFetcher&) = delete;

  // Never empty. `wanted` is not asked for data: URLs, whose bytes the caller held already.
  std::vector<std::byte> fetch(
      std::string_view url,
      std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max(),
      std::stop_token cancel = {}, const BytesWanted& wanted = {}) const;

  const FetchPolicy& policy() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A URL for logs: data: payloads, credentials and query are cut off.
std::string redact_media_url(std::string_view url);

}  // namespace vitrove
