#include "media/data_url.h"

#include <optional>
#include <string>

#include "media/ascii.h"
#include "media/base64.h"
#include "media/percent.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::string_view scheme = "data:";

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, "data: URL: " + what);
}

void check_size(std::uint64_t size, std::uint64_t max_bytes) {
  if (size <= max_bytes) return;
  throw Error(ErrorCode::too_large,
              "the item exceeds the limit of " + std::to_string(max_bytes) + " bytes");
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// ";base64" is the last of the parameters.
bool declares_base64(std::string_view header) {
  const std::size_t semicolon = header.rfind(';');
  return semicolon != std::string_view::npos &&
         equals_ignoring_case(trim(header.substr(semicolon + 1)), "base64");
}

std::vector<std::byte> decode_payload(std::string_view payload, bool is_base64) {
  std::optional<std::string> unescaped;
  if (!is_base64 || payload.find('%') != std::string_view::npos) {
    unescaped = percent_decode(payload);
    if (!unescaped) fail("bad percent-encoding");
    payload = *unescaped;
  }
  if (is_base64) {
    auto bytes = decode_base64(payload);
    if (!bytes) fail("bad base64");
    return std::move(*bytes);
  }
  const auto* data = reinterpret_cast<const std::byte*>(payload.data());
  return {data, data + payload.size()};
}

}  // namespace

bool is_data_url(std::string_view url) { return starts_ignoring_case(url, scheme); }

std::vector<std::byte> decode_data_url(std::string_view url, std::uint64_t max_bytes) {
  url.remove_prefix(scheme.size());
  const std::size_t comma = url.find(',');
  if (comma == std::string_view::npos) fail("no comma before the data");
  const std::string_view payload = url.substr(comma + 1);
  // Before any allocation. Fully escaped base64 has four characters a byte; twice that leaves room
  // for line breaks.
  check_size(payload.size() / 8, max_bytes);
  std::vector<std::byte> bytes = decode_payload(payload, declares_base64(url.substr(0, comma)));
  if (bytes.empty()) fail("no data");
  check_size(bytes.size(), max_bytes);
  return bytes;
}

}  // namespace vitrove
