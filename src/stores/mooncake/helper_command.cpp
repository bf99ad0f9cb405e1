#include "stores/mooncake/helper_command.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

#include "base/environment.h"
#include "stores/mooncake/helper_source.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

namespace fs = std::filesystem;

constexpr const char* helper_name = "vitrove-mooncake-helper";

// The Python program has no file of its own that could be missing or of another version.
UniqueFd script_file() {
  UniqueFd fd(::memfd_create("vitrove-mooncake-helper.py", MFD_CLOEXEC));
  std::string_view rest = helper_source;
  while (fd && !rest.empty()) {
    const ssize_t written = ::write(fd.get(), rest.data(), rest.size());
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (!rest.empty()) {
    throw Error(ErrorCode::unavailable, "mooncake store: no memory for its helper program",
                errno_text(errno));
  }
  return fd;
}

std::string find_helper(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  std::string named = environment("VITROVE_MOONCAKE_HELPER").value_or("");
  if (!named.empty()) return named;
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place :
       {here, here.parent_path() / "libexec" / "vitrove", fs::path(VITROVE_LIBEXEC_DIR)}) {
    if (fs::exists(place / helper_name, error)) return (place / helper_name).string();
  }
  throw Error(ErrorCode::unavailable, std::string("mooncake store: the program ") + helper_name +
                                          " is not beside this one; VITROVE_MOONCAKE_HELPER says "
                                          "where it is");
}

bool names(const std::string& setting, std::string_view name) {
  return setting.size() > name.size() && setting.starts_with(name) && setting[name.size()] == '=';
}

// What an operator has set himself stays.
void set_default(std::vector<std::string>& environment, std::string_view name,
                 const std::string& value) {
  const bool is_set =
      std::ranges::any_of(environment, [&](const auto& setting) { return names(setting, name); });
  if (!is_set) environment.push_back(std::string(name) + "=" + value);
}

// Ours, less what is meant for Vitrove alone (keys, for instance), and with Mooncake's time limits.
std::vector<std::string> helper_environment(const MooncakeStoreOptions& options) {
  std::vector<std::string> environment;
  for (char** setting = environ; *setting != nullptr; ++setting) {
    if (!std::string_view(*setting).starts_with("VITROVE_")) environment.emplace_back(*setting);
  }
  set_default(environment, "MC_RPC_TIMEOUT_MS", std::to_string(options.rpc_timeout.count()));
  set_default(environment, "MC_RPC_CONNECT_TIMEOUT_MS",
              std::to_string(options.connect_timeout.count()));
  set_default(environment, "MC_TCP_ENABLE_CONNECTION_POOL", "1");
  set_default(environment, "GLOG_minloglevel", "1");  // no line for every transfer
  return environment;
}

}  // namespace

Command helper_command(const MooncakeStoreOptions& options) {
  Command command;
  const std::string parent = std::to_string(::getpid());
  const std::string threads = std::to_string(options.threads);
  if (options.library.empty()) {
    command.arguments = {options.python, "/proc/self/fd/4", parent, threads};
    command.script = script_file();
  } else {
    command.arguments = {find_helper(options.helper), options.library, parent, threads};
  }
  command.environment = helper_environment(options);
  return command;
}

std::string helper_settings(const MooncakeStoreOptions& options) {
  return nlohmann::json{{"master", options.master},
                        {"protocol", options.protocol},
                        {"device", options.device},
                        {"metadata", options.metadata},
                        {"hostname", options.hostname},
                        {"segment", options.segment_bytes},
                        {"local_buffer", options.local_buffer_bytes},
                        {"replicas", options.replicas},
                        {"soft_pin", options.soft_pin},
                        {"hard_pin", options.hard_pin},
                        {"tenant", options.tenant}}
      .dump();
}

}  // namespace vitrove::mooncake
