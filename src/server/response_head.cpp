#include "server/response_head.h"

#include <array>
#include <ctime>

namespace vitrove {
namespace {

// IMF-fixdate; English whatever the locale.
std::string http_date(std::time_t now) {
  static constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed",
                                                      "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  char rest[40];
  std::snprintf(rest, sizeof rest, "%02d %s %04d %02d:%02d:%02d GMT", utc.tm_mday,
                months[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  return std::string(days[static_cast<std::size_t>(utc.tm_wday)]) + ", " + rest;
}

const std::string& http_date_now() {
  thread_local std::time_t at = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != at) {
    at = now;
    text = http_date(now);
  }
  return text;
}

void add_field(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string response_head(const HttpResponse& response) {
  std::string head;
  head.reserve(256);
  head.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  head.append(reason_phrase(response.status)).append("\r\n");
  add_field(head, "Server", "vitrove");
  add_field(head, "Date", http_date_now());
  if (!response.content_type.empty()) add_field(head, "Content-Type", response.content_type);
  if (response.status != 204) {
    add_field(head, "Content-Length", std::to_string(response.content_length()));
  }
  if (!response.req_id.empty()) add_field(head, "X-Request-Id", response.req_id);
  for (const auto& [name, value] : response.headers) add_field(head, name, value);
  add_field(head, "Connection", response.close ? "close" : "keep-alive");
  head.append("\r\n");
  return head;
}

}  // namespace vitrove
