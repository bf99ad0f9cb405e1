#include "stores/file/layout.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace vitrove::file {
namespace {

constexpr std::string_view temporary_prefix = ".vt1-tmp-";
constexpr std::size_t token_length = 16;

bool is_hex(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

// "vt1-abcd…" gives "/ab/cd".
std::string fan_out(const std::string& name) {
  return '/' + name.substr(4, 2) + '/' + name.substr(6, 2);
}

}  // namespace

std::string Layout::directory_of(const EmbeddingKey& key) const {
  return base_ + fan_out(key.text());
}

std::string Layout::path_of(const EmbeddingKey& key) const {
  const std::string name = key.text();
  return base_ + fan_out(name) + '/' + name;
}

std::string Layout::temporary_path(const EmbeddingKey& key, std::string_view token,
                                   std::uint64_t number) const {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), number, 16).ptr;
  return directory_of(key) + '/' + std::string(temporary_prefix) + std::string(token) + '-' +
         std::string(digits.data(), end);
}

bool is_fan_out_name(std::string_view name) { return name.size() == 2 && is_hex(name); }

std::optional<EmbeddingKey> parse_value_name(std::string_view first, std::string_view second,
                                             std::string_view name) {
  if (!name.starts_with("vt1-") || name.size() != 4 + 64) return std::nullopt;
  if (name.substr(4, 2) != first || name.substr(6, 2) != second) return std::nullopt;
  const auto key = EmbeddingKey::parse(name);
  if (!key || key->text() != name) return std::nullopt;  // capitals would be another file
  return key;
}

std::optional<std::string_view> parse_temporary_name(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return std::nullopt;
  name.remove_prefix(temporary_prefix.size());
  if (name.size() < token_length + 2 || name.size() > token_length + 17) return std::nullopt;
  const std::string_view token = name.substr(0, token_length);
  const std::string_view number = name.substr(token_length + 1);
  if (name[token_length] != '-' || !is_hex(token) || !is_hex(number)) return std::nullopt;
  return token;
}

}  // namespace vitrove::file
