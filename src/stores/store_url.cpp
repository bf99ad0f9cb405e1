#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "stores/store_name.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Why a URL is bad; turned into an Error by parse(), which alone knows the text.
struct BadUrl {
  std::string reason;
};

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) throw BadUrl{"'%' is not followed by two hex digits"};
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  if (decoded.find('\0') != std::string::npos) throw BadUrl{"holds a NUL byte"};
  return decoded;
}

std::string percent_encode(std::string_view text, std::string_view keep) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 128 && (std::isalnum(byte) != 0 || keep.find(c) != keep.npos);
    if (plain) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += digits[byte >> 4];
      encoded += digits[byte & 15];
    }
  }
  return encoded;
}

int parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535) {
    throw BadUrl{"the port is not a number from 1 to 65535"};
  }
  return port;
}

void parse_host_and_port(std::string_view text, StoreUrl& url) {
  if (text.find(',') != text.npos) {
    url.host = percent_decode(text);
    return;
  }
  std::string_view host = text;
  std::string_view after_host;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == text.npos) throw BadUrl{"'[' without ']'"};
    host = text.substr(1, close - 1);
    after_host = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':'); colon != text.npos) {
    host = text.substr(0, colon);
    after_host = text.substr(colon);
  }
  if (!after_host.empty()) {
    if (!after_host.starts_with(':')) throw BadUrl{"text after ']'"};
    if (host.empty()) throw BadUrl{"a port without a host"};
    url.port = parse_port(after_host.substr(1));
  }
  url.host = percent_decode(host);
  if (url.host.find(',') != url.host.npos) throw BadUrl{"a host name holds a comma"};
}

void parse_authority(std::string_view text, StoreUrl& url) {
  const std::size_t at = text.rfind('@');
  if (at != text.npos) {
    const std::string_view login = text.substr(0, at);
    const std::size_t colon = login.find(':');
    url.user = percent_decode(login.substr(0, colon));
    if (colon != login.npos) url.password = percent_decode(login.substr(colon + 1));
    text.remove_prefix(at + 1);
  }
  parse_host_and_port(text, url);
}

void parse_options(std::string_view text, StoreUrl& url) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == pair.npos || equals == 0) throw BadUrl{"an option is not written name=value"};
    const std::string name = percent_decode(pair.substr(0, equals));
    if (!url.options.emplace(name, percent_decode(pair.substr(equals + 1))).second) {
      throw BadUrl{"option '" + name + "' is given twice"};
    }
  }
}

StoreUrl parse_or_throw_reason(std::string_view text) {
  StoreUrl url;
  const std::size_t colon = text.find(':');
  if (colon == text.npos) throw BadUrl{"no scheme (as in file:///var/lib/vitrove)"};
  url.scheme = lower_case(text.substr(0, colon));
  if (!is_store_name(url.scheme)) throw BadUrl{"the scheme is not a name"};
  if (text.find('#') != text.npos) throw BadUrl{"'#' has to be written %23"};

  std::string_view rest = text.substr(colon + 1);
  const std::size_t question = rest.find('?');
  if (question != rest.npos) {
    parse_options(rest.substr(question + 1), url);
    rest = rest.substr(0, question);
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    const std::string_view authority = rest.substr(0, rest.find('/'));
    parse_authority(authority, url);
    rest.remove_prefix(authority.size());
  }
  url.path = percent_decode(rest);
  return url;
}

bool speaks_of_secrets(std::string_view option_name) {
  constexpr std::array<std::string_view, 5> words = {"pass", "secret", "token", "auth", "key"};
  const std::string name = lower_case(option_name);
  return std::ranges::any_of(words, [&](auto word) { return name.find(word) != name.npos; });
}

std::string redact_options(std::string_view text) {
  std::string redacted;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    const std::size_t equals = pair.find('=');
    const bool hide = equals != pair.npos && speaks_of_secrets(pair.substr(0, equals));
    redacted += hide ? std::string(pair.substr(0, equals + 1)) + "***" : std::string(pair);
    if (pair.size() < text.size()) redacted += '&';
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
  }
  return redacted;
}

bool is_well_formed(std::string_view text) {
  try {
    parse_or_throw_reason(text);
    return true;
  } catch (const BadUrl&) {
    return false;
  }
}

}  // namespace

StoreUrl StoreUrl::parse(std::string_view text) {
  try {
    return parse_or_throw_reason(text);
  } catch (const BadUrl& bad) {
    throw Error(ErrorCode::invalid_argument, "store URL: " + bad.reason, redact_url(text));
  }
}

std::string StoreUrl::text() const {
  std::string text = scheme + ":";
  const bool has_login = !user.empty() || !password.empty();
  if (has_login || !host.empty() || path.starts_with('/')) {
    text += "//";
    if (has_login) text += percent_encode(user, "-._~");
    if (!password.empty()) text += ":" + percent_encode(password, "-._~");
    if (has_login) text += "@";
    const bool is_ipv6 = host.find(':') != host.npos && host.find(',') == host.npos;
    text += is_ipv6 ? "[" + percent_encode(host, "-._~:") + "]" : percent_encode(host, "-._~:,");
    if (port != 0) text += ":" + std::to_string(port);
  }
  return text + percent_encode(path, "-._~/");
}

std::string redact_url(std::string_view text) {
  // A password that was not percent-encoded may reach beyond the authority, or into what looks
  // like options: look for the "@" that ends it as far to the right as it can be.
  const std::size_t question = text.find('?');
  const std::string_view searched = is_well_formed(text) ? text.substr(0, question) : text;
  const std::size_t slashes = text.find("//");
  const std::size_t start = slashes == text.npos ? 0 : slashes + 2;
  const std::size_t at = searched.rfind('@');
  std::string redacted(text.substr(0, start));
  std::string_view rest = text.substr(start);
  if (at != text.npos && at > start) {
    const std::string_view login = text.substr(start, at - start);
    const std::size_t colon = login.find(':');
    redacted += login.substr(0, colon);
    if (colon != login.npos) redacted += ":***";
    rest = text.substr(at);
  }
  const std::size_t options = rest.find('?');
  if (options == rest.npos) return redacted + std::string(rest);
  return redacted + std::string(rest.substr(0, options + 1)) +
         redact_options(rest.substr(options + 1));
}

}  // namespace vitrove
