#include "server/http_message.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <random>

namespace vitrove {
namespace {

constexpr std::size_t max_req_id = 256;

std::optional<int> hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
      continue;
    }
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_value(text[i + 1]);
    const auto low = hex_value(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

bool parse_query(std::string_view text, std::map<std::string, std::string>& query) {
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    const auto name = percent_decode(pair.substr(0, equals), true);
    const auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return false;
    if (!query.emplace(*name, *value).second) return false;
  }
  return true;
}

// "http://host/path" is allowed by HTTP/1.1 and means "/path".
std::string_view origin_form(std::string_view target) {
  const auto scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const auto slash = target.find('/', scheme + 3);
  return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
}

}  // namespace

bool parse_target(std::string_view target, HttpRequest& request) {
  request.target = target;
  if (target == "*") {
    request.path = "*";
    return true;
  }
  target = origin_form(target);
  if (!target.starts_with('/')) return false;
  const auto question = std::min(target.find('?'), target.size());
  const auto path = percent_decode(target.substr(0, question), false);
  if (!path) return false;
  request.path = *path;
  request.query.clear();
  return parse_query(target.substr(std::min(question + 1, target.size())), request.query);
}

bool is_valid_req_id(std::string_view id) {
  const auto is_printable = [](char c) { return c >= 0x20 && c <= 0x7e; };
  return !id.empty() && id.size() <= max_req_id && std::ranges::all_of(id, is_printable);
}

std::string make_req_id() {
  static constexpr std::string_view digits = "0123456789abcdef";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uint64_t word = random();
  std::string id = "vt-";
  for (int i = 0; i < 16; ++i, word >>= 4) id += digits[word & 15];
  return id;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 424:
      return "Failed Dependency";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

}  // namespace vitrove
