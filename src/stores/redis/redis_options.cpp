#include "stores/redis/redis_options.h"

#include <charconv>
#include <string_view>

#include "vitrove/error.h"

namespace vitrove::redis {
namespace {

constexpr int default_port = 6379;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::invalid_argument, "redis store: " + why);
}

int parse_number(std::string_view text, int least, int most, const std::string& what) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size() || number < least ||
      number > most) {
    refuse(what + " is not a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

// "host", "host:port", "[v6]", "[v6]:port".
std::pair<std::string, int> parse_server(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == text.npos) refuse("'[' without ']' in the list of hosts");
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (const std::size_t colon = text.find(':'); colon != text.npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  if (host.empty()) refuse("an empty host in the list of hosts");
  if (port.empty()) return {std::string(host), default_port};
  if (!port.starts_with(':')) refuse("text after ']' in the list of hosts");
  return {std::string(host), parse_number(port.substr(1), 1, 65535, "a port in the list of hosts")};
}

std::vector<std::pair<std::string, int>> servers_of(const StoreUrl& url) {
  if (url.host.find(',') == url.host.npos) {
    return {{url.host, url.port == 0 ? default_port : url.port}};
  }
  std::vector<std::pair<std::string, int>> servers;
  std::string_view rest = url.host;
  while (true) {
    const std::size_t comma = rest.find(',');
    servers.push_back(parse_server(rest.substr(0, comma)));
    if (comma == rest.npos) return servers;
    rest.remove_prefix(comma + 1);
  }
}

int database_of(const std::string& path) {
  if (path.empty() || path == "/") return 0;
  return parse_number(std::string_view(path).substr(1), 0, 1'000'000, "the database in the path");
}

std::chrono::milliseconds milliseconds(std::chrono::microseconds duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(duration);
}

void read_scheme(std::string_view scheme, RedisStoreOptions& chosen) {
  if (scheme.find("sentinel") != scheme.npos) {
    refuse(
        "Sentinel is not supported; name the server itself (redis://host:port) or a cluster "
        "(redis+cluster://host:port)");
  }
  chosen.cluster = scheme.ends_with("+cluster");
  const std::string_view engine = scheme.substr(0, scheme.find('+'));
  chosen.tls = engine == "rediss" || engine == "valkeys";
}

}  // namespace

RedisStoreOptions read_options(const StoreUrl& url, StoreOptions& options) {
  RedisStoreOptions chosen;
  read_scheme(url.scheme, chosen);
  if (url.host.empty()) refuse("no host is named (as in redis://localhost:6379)");
  chosen.servers = servers_of(url);
  chosen.user = url.user;
  chosen.password = url.password;
  chosen.database = database_of(url.path);
  chosen.connect_timeout =
      milliseconds(options.duration("connect_timeout", chosen.connect_timeout));
  chosen.timeout = milliseconds(options.duration("timeout", chosen.timeout));
  const std::int64_t pool = options.integer("pool", chosen.pool);
  if (pool < 2 || pool > 1024) refuse("pool is not a number from 2 to 1024");
  chosen.pool = static_cast<std::uint32_t>(pool);
  chosen.prefix = options.text("prefix", chosen.prefix);
  chosen.ttl = milliseconds(options.duration("ttl", chosen.ttl));
  chosen.max_value_bytes = options.bytes("max_value_bytes", chosen.max_value_bytes);
  chosen.strict = options.flag("strict", chosen.strict);
  if (chosen.tls) {  // otherwise unknown, and refused as such
    chosen.tls_ca = options.text("tls_ca", chosen.tls_ca);
    chosen.tls_cert = options.text("tls_cert", chosen.tls_cert);
    chosen.tls_key = options.text("tls_key", chosen.tls_key);
    chosen.tls_name = options.text("tls_name", chosen.tls_name);
    chosen.tls_verify = options.flag("tls_verify", chosen.tls_verify);
  }
  return chosen;
}

void check_options(const RedisStoreOptions& options) {
  using std::chrono::milliseconds;
  if (options.servers.empty()) refuse("no host is named");
  if (!options.cluster && options.servers.size() > 1) {
    refuse("several hosts are named; of a cluster write redis+cluster://");
  }
  if (options.cluster && options.database != 0) refuse("a cluster has no database but 0");
  if (options.connect_timeout <= milliseconds(0) || options.timeout <= milliseconds(0)) {
    refuse("a timeout has no length");
  }
  constexpr std::chrono::hours longest(1);
  if (options.connect_timeout > longest || options.timeout > longest) {
    refuse("a timeout is longer than an hour");
  }
  if (options.pool < 2) refuse("pool is less than 2");
  if (options.ttl < milliseconds(0)) refuse("ttl is less than nothing");
  if (options.max_value_bytes == 0) refuse("max_value_bytes is 0");
  if (!options.user.empty() && options.password.empty()) refuse("a user without a password");
  if (!options.tls_key.empty() && options.tls_cert.empty()) refuse("tls_key without tls_cert");
}

}  // namespace vitrove::redis
