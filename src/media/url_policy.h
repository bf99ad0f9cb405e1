// Which http: and https: URLs may be fetched, as far as the URL itself tells.
//
// The same parser (libcurl's) reads the URL here and makes the request later, so that the two
// cannot disagree about the host. What a name resolves to is checked where the socket is opened
// (http_fetcher.cpp); that check holds whatever was missed here.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <curl/curl.h>

#include "vitrove/error.h"

namespace vitrove {

class HostRules {
 public:
  // Throws Error{invalid_argument} on an empty or malformed domain (fetch.h has the forms).
  HostRules(const std::vector<std::string>& allowed_domains, bool allow_private);

  bool allows_private() const { return allow_private_; }
  // By name only; `host` as in a URL, without brackets.
  bool lists(std::string_view host) const;

 private:
  std::vector<std::string> domains_;  // lower case
  bool allow_private_;
};

struct FreeCurlUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

struct HttpUrl {
  std::unique_ptr<CURLU, FreeCurlUrl> parsed;
  std::string host;      // lower case, without brackets, zone and final dot
  std::string for_logs;  // without query
};

// Throws Error{invalid_argument} for what is no http(s) URL or holds credentials, Error{forbidden}
// for a host that the rules exclude.
HttpUrl parse_http_url(std::string_view text, const HostRules& rules);

// The one answer to names that lead to a private address and to those that lead nowhere, for now
// perhaps: the difference would tell strangers which names mean something inside. Logs get it with
// `detail`.
Error not_reached(const std::string& detail);

}  // namespace vitrove
