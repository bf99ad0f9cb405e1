#include "stores/mooncake/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "stores/store_name.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

using std::chrono::milliseconds;
using Json = nlohmann::json;

constexpr int default_port = 50051;

[[noreturn]] void refuse(const std::string& message, const std::string& detail = {}) {
  throw Error(ErrorCode::invalid_argument, "mooncake store: " + message, detail);
}

std::string text_in(const Json& file, const char* name, const std::string& fallback) {
  const auto found = file.find(name);
  if (found == file.end() || found->is_null()) return fallback;
  if (!found->is_string()) refuse(std::string("'") + name + "' in its file is not a text");
  return found->get<std::string>();
}

// "4gb", "512 MB", "1.5g": sizes as Mooncake's own reader takes them, all in powers of 1024.
std::uint64_t mooncake_size(const std::string& text, const char* name) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (std::isspace(static_cast<unsigned char>(*c)) == 0) unit += *c;
  }
  unit = lower_case(unit);
  if (unit.ends_with('b')) unit.pop_back();
  constexpr std::string_view units = "kmgt";
  const std::size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  const double bytes = number * std::pow(1024.0, static_cast<double>(power));
  constexpr double limit = 9e15;  // what a double holds exactly
  if (error != std::errc{} || unit.size() > 1 || (!unit.empty() && power == 0) ||
      !(bytes >= 0 && bytes < limit)) {
    refuse(std::string("'") + name + "' in its file is not a size");
  }
  return static_cast<std::uint64_t>(bytes);
}

std::uint64_t size_in(const Json& file, const char* name, std::uint64_t fallback) {
  const auto found = file.find(name);
  if (found == file.end() || found->is_null()) return fallback;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  if (found->is_string()) return mooncake_size(found->get<std::string>(), name);
  refuse(std::string("'") + name + "' in its file is not a size");
}

milliseconds time_option(StoreOptions& options, const char* name, milliseconds fallback) {
  const auto time = std::chrono::ceil<milliseconds>(options.duration(name, fallback));
  if (time <= milliseconds(0) || time > std::chrono::hours(1)) {
    refuse(std::string("option '") + name + "' must be above 0 and at most an hour");
  }
  return time;
}

std::uint32_t count_option(StoreOptions& options, const char* name, std::uint32_t fallback,
                           std::uint32_t most) {
  const std::int64_t count = options.integer(name, fallback);
  if (count < 1 || count > most) {
    refuse(std::string("option '") + name + "' must be from 1 to " + std::to_string(most));
  }
  return static_cast<std::uint32_t>(count);
}

std::string master_of(const StoreUrl& url) {
  if (url.host.find(',') != url.host.npos) refuse("takes one master in its URL");
  const bool is_ipv6 = url.host.find(':') != url.host.npos;
  const int port = url.port == 0 ? default_port : url.port;
  return (is_ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(port);
}

void choose_provider(StoreOptions& options, MooncakeStoreOptions& chosen) {
  const std::string python = options.text("python", "");
  const std::string library = options.text("library", "");
  if (!python.empty() && !library.empty()) refuse("takes either 'python' or 'library', not both");
  if (!python.empty()) {
    chosen.python = python;
    return;
  }
  chosen.library = library.empty() ? environment("VITROVE_MOONCAKE_LIBRARY").value_or("") : library;
  chosen.python = environment("VITROVE_MOONCAKE_PYTHON").value_or("");
  if (chosen.python.empty()) chosen.python = "python3";
}

}  // namespace

void read_config_file(const std::filesystem::path& path, MooncakeStoreOptions& options) {
  std::ifstream stream(path);
  if (!stream) refuse("the file of MOONCAKE_CONFIG_PATH cannot be read", path.string());
  const Json file = Json::parse(stream, nullptr, false);
  if (!file.is_object()) {
    refuse("the file of MOONCAKE_CONFIG_PATH is not a JSON object", path.string());
  }
  options.master = text_in(file, "master_server_address", options.master);
  options.hostname = text_in(file, "local_hostname", options.hostname);
  options.metadata = text_in(file, "metadata_server", options.metadata);
  options.protocol = lower_case(text_in(file, "protocol", options.protocol));
  options.device = text_in(file, "device_name", options.device);
  options.tenant = text_in(file, "tenant_id", options.tenant);
  options.segment_bytes = size_in(file, "global_segment_size", options.segment_bytes);
  options.local_buffer_bytes = size_in(file, "local_buffer_size", options.local_buffer_bytes);
  if (options.master.empty()) {
    refuse("the file of MOONCAKE_CONFIG_PATH has no 'master_server_address'", path.string());
  }
}

MooncakeStoreOptions read_options(const StoreUrl& url, StoreOptions& options) {
  if (!url.user.empty() || !url.password.empty()) refuse("knows no user and no password");
  if (!url.path.empty() && url.path != "/") refuse("takes no path");
  MooncakeStoreOptions chosen;
  if (!url.host.empty()) {
    chosen.master = master_of(url);
  } else {
    const std::string path = environment("MOONCAKE_CONFIG_PATH").value_or("");
    if (path.empty()) refuse("name its master (mooncake://HOST:PORT) or set MOONCAKE_CONFIG_PATH");
    read_config_file(path, chosen);
  }
  chosen.protocol = lower_case(options.text("protocol", chosen.protocol));
  chosen.device = options.text("device", chosen.device);
  chosen.metadata = options.text("metadata", chosen.metadata);
  chosen.hostname = options.text("hostname", chosen.hostname);
  chosen.segment_bytes = options.bytes("segment", chosen.segment_bytes);
  chosen.local_buffer_bytes = options.bytes("local_buffer", chosen.local_buffer_bytes);
  chosen.replicas = count_option(options, "replicas", chosen.replicas, 64);
  chosen.soft_pin = options.flag("soft_pin", chosen.soft_pin);
  chosen.hard_pin = options.flag("hard_pin", chosen.hard_pin);
  chosen.tenant = options.text("tenant", chosen.tenant);
  chosen.prefix = options.text("prefix", chosen.prefix);
  choose_provider(options, chosen);
  chosen.staging_bytes = options.bytes("staging", chosen.staging_bytes);
  chosen.threads = count_option(options, "threads", chosen.threads, 256);
  chosen.rpc_timeout = time_option(options, "rpc_timeout", chosen.rpc_timeout);
  chosen.connect_timeout = time_option(options, "connect_timeout", chosen.connect_timeout);
  chosen.start_timeout = time_option(options, "start_timeout", chosen.start_timeout);
  chosen.hang_timeout = time_option(options, "hang_timeout", chosen.hang_timeout);
  chosen.strict = options.flag("strict", chosen.strict);
  options.reject_unknown();
  return chosen;
}

void check(const MooncakeStoreOptions& options) {
  constexpr std::uint64_t least_staging = std::uint64_t{1} << 20;
  constexpr std::uint64_t most_staging = std::uint64_t{64} << 30;
  if (options.master.empty()) refuse("has no master");
  if (options.protocol.empty()) refuse("has no protocol");
  if (options.staging_bytes < least_staging || options.staging_bytes > most_staging) {
    refuse("option 'staging' must be from 1MiB to 64GiB");
  }
  const bool printable =
      std::ranges::all_of(options.prefix, [](unsigned char c) { return std::isgraph(c) != 0; });
  if (options.prefix.size() > 256 || !printable) {
    refuse("option 'prefix' must be at most 256 printable characters");
  }
  if (options.hard_pin && options.soft_pin) refuse("takes 'soft_pin' or 'hard_pin', not both");
}

}  // namespace vitrove::mooncake
