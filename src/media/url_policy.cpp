#include "media/url_policy.h"

#include <algorithm>
#include <new>

#include "media/ascii.h"
#include "media/ip_address.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::size_t max_url_size = 8192;

struct FreeCurlText {
  void operator()(char* text) const { curl_free(text); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, FreeCurlText> owned(text);
  return text;
}

[[noreturn]] void fail_malformed_url() {
  throw Error(ErrorCode::invalid_argument, "malformed media URL");
}

void check_characters(std::string_view text) {
  if (text.size() > max_url_size) {
    throw Error(ErrorCode::invalid_argument,
                "media URL longer than " + std::to_string(max_url_size) + " characters");
  }
  const bool is_clean = std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte == 0x7f || c == '\\';
  });
  if (!is_clean) fail_malformed_url();
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string plain_host(CURLU* url) {
  std::string host = ascii_lower(part_of(url, CURLUPART_HOST));
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.size() > 1 && host.back() == '.') host.pop_back();
  return host;
}

void check_host(const HttpUrl& url, const HostRules& rules) {
  if (!rules.lists(url.host)) {
    throw Error(ErrorCode::forbidden, "this media host is not allowed", url.for_logs);
  }
  if (rules.allows_private()) return;
  const std::string zone = part_of(url.parsed.get(), CURLUPART_ZONEID);
  if (!zone.empty() || !is_public_literal(url.host).value_or(true)) {
    throw Error(ErrorCode::forbidden, "this media host is not public", url.for_logs);
  }
}

}  // namespace

Error not_reached(const std::string& detail) {
  return Error(ErrorCode::media_fetch_failed,
               "the media's origin could not be reached, or is not public", detail);
}

HostRules::HostRules(const std::vector<std::string>& allowed_domains, bool allow_private)
    : allow_private_(allow_private) {
  for (const std::string& domain : allowed_domains) {
    const std::string_view name = std::string_view(domain).substr(domain.starts_with('.') ? 1 : 0);
    if (name.empty() || name.find_first_of("/:@*?# \t") != std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "allowed media domain '" + domain + "' is not a host name or .domain");
    }
    domains_.push_back(ascii_lower(domain));
  }
}

bool HostRules::lists(std::string_view host) const {
  if (domains_.empty()) return true;
  const std::string name = ascii_lower(host);
  return std::ranges::any_of(domains_, [&](const std::string& domain) {
    if (!domain.starts_with('.')) return name == domain;
    return name.ends_with(domain) || name == std::string_view(domain).substr(1);
  });
}

HttpUrl parse_http_url(std::string_view text, const HostRules& rules) {
  check_characters(text);
  HttpUrl url;
  url.parsed.reset(curl_url());
  if (!url.parsed) throw std::bad_alloc();
  const CURLUcode status = curl_url_set(url.parsed.get(), CURLUPART_URL, std::string(text).c_str(),
                                        CURLU_DISALLOW_USER | CURLU_URLENCODE);
  if (status == CURLUE_USER_NOT_ALLOWED) {
    throw Error(ErrorCode::invalid_argument, "media URLs must not hold a user name or password");
  }
  if (status != CURLUE_OK) fail_malformed_url();
  const std::string scheme = part_of(url.parsed.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") fail_malformed_url();
  url.host = plain_host(url.parsed.get());
  // Rules are written for the names that are looked up, so international ones come as "xn--".
  if (!is_ascii(url.host)) fail_malformed_url();
  url.for_logs = scheme + "://" + url.host + part_of(url.parsed.get(), CURLUPART_PATH);
  check_host(url, rules);
  return url;
}

}  // namespace vitrove
