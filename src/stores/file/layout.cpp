#include "stores/file/layout.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace vitrove::file {
namespace {

constexpr std::string_view temporary_prefix = ".vt1-tmp-";
constexpr std::string_view claim_prefix = ".vt1-claim-";  // and the digits of the key
constexpr std::size_t identity_length = 16;               // of a token, and of a host

bool is_hex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

std::string hex_of(std::uint64_t number) {
  std::array<char, 16> digits;
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), number, 16).ptr};
}

// Takes hex digits off the front of a name, up to a dash or the end.
std::string_view take_hex(std::string_view& name) {
  const std::string_view part = name.substr(0, name.find('-'));
  name.remove_prefix(std::min(name.size(), part.size() + 1));
  return is_hex(part) ? part : std::string_view();
}

// "vt1-abcd…" gives "/a/b": 256 directories in all. More of them would be made for the better part
// of a store's first hundred thousand values, and making one costs about as much as writing a
// value.
std::string fan_out(const std::string& name) { return {'/', name[4], '/', name[5]}; }

}  // namespace

std::string Layout::directory_of(const EmbeddingKey& key) const {
  return base_ + fan_out(key.text());
}

std::string Layout::path_of(const EmbeddingKey& key) const {
  const std::string name = key.text();
  return base_ + fan_out(name) + '/' + name;
}

// ".vt1-tmp-TOKEN-HOST-PID-NUMBER", both numbers in hex.
std::string Layout::temporary_path(const EmbeddingKey& key, const ProcessIdentity& writer,
                                   std::uint64_t number) const {
  return directory_of(key) + '/' + std::string(temporary_prefix) + writer.token + '-' +
         writer.host + '-' + hex_of(static_cast<std::uint64_t>(writer.pid)) + '-' + hex_of(number);
}

std::string Layout::claim_path(const EmbeddingKey& key) const {
  return directory_of(key) + '/' + std::string(claim_prefix) + key.text().substr(4);
}

bool is_fan_out_name(std::string_view name) { return name.size() == 1 && is_hex(name); }

std::optional<EmbeddingKey> parse_value_name(std::string_view first, std::string_view second,
                                             std::string_view name) {
  if (!name.starts_with("vt1-") || name.size() != 4 + 64) return std::nullopt;
  if (name.substr(4, 1) != first || name.substr(5, 1) != second) return std::nullopt;
  const auto key = EmbeddingKey::parse(name);
  if (!key || key->text() != name) return std::nullopt;  // capitals would be another file
  return key;
}

bool is_claim_name(std::string_view first, std::string_view second, std::string_view name) {
  if (!name.starts_with(claim_prefix)) return false;
  const std::string value = "vt1-" + std::string(name.substr(claim_prefix.size()));
  return parse_value_name(first, second, value).has_value();
}

std::optional<ProcessIdentity> parse_temporary_name(std::string_view name) {
  constexpr std::size_t max_pid_digits = 8;
  constexpr std::size_t max_number_digits = 16;
  if (!name.starts_with(temporary_prefix) || name.ends_with('-')) return std::nullopt;
  name.remove_prefix(temporary_prefix.size());
  const std::string_view token = take_hex(name);
  const std::string_view host = take_hex(name);
  const std::string_view pid = take_hex(name);
  const std::string_view number = take_hex(name);
  if (token.size() != identity_length || host.size() != identity_length) return std::nullopt;
  if (pid.empty() || pid.size() > max_pid_digits) return std::nullopt;
  if (number.empty() || number.size() > max_number_digits || !name.empty()) return std::nullopt;
  ProcessIdentity writer{std::string(token), std::string(host), 0};
  std::from_chars(pid.data(), pid.data() + pid.size(), writer.pid, 16);
  return writer;
}

}  // namespace vitrove::file
