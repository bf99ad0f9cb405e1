#include "stores/redis/server_memory.h"

#include <charconv>
#include <system_error>

namespace vitrove::redis {
namespace {

// "used_memory:872032\r\n"; the name alone at the start of a line.
std::optional<std::uint64_t> number_after(std::string_view info, std::string_view name) {
  while (!info.empty()) {
    const std::size_t end = info.find('\n');
    std::string_view line = info.substr(0, end);
    info = end == info.npos ? std::string_view() : info.substr(end + 1);
    if (!line.starts_with(name) || line.size() == name.size() || line[name.size()] != ':') continue;
    line.remove_prefix(name.size() + 1);
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    const std::string_view rest(stop, static_cast<std::size_t>(line.data() + line.size() - stop));
    if (error != std::errc{} || (!rest.empty() && rest != "\r")) return std::nullopt;
    return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ServerMemory> parse_server_memory(std::string_view info) {
  const auto used = number_after(info, "used_memory");
  if (!used) return std::nullopt;
  return ServerMemory{*used, number_after(info, "maxmemory").value_or(0)};
}

}  // namespace vitrove::redis
