#include "stores/plugin_library.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

#include "base/environment.h"
#include "stores/store_name.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_prefix = "libvitrove_store_";
constexpr std::string_view file_suffix = ".so";

// Everything from here on in the table is optional.
constexpr std::size_t mandatory_bytes = offsetof(vitrove_store_plugin, register_buffer);

[[noreturn]] void refuse(const fs::path& file, const std::string& why,
                         const std::string& detail = {}) {
  throw Error(ErrorCode::invalid_argument,
              "store plugin '" + file.filename().string() + "': " + why,
              file.string() + (detail.empty() ? "" : ": " + detail));
}

std::string last_loader_error() {
  const char* const text = ::dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps one a thread
  return text == nullptr ? "" : text;
}

vitrove_store_plugin checked_copy(const fs::path& file, const vitrove_store_plugin* theirs) {
  if (theirs == nullptr) refuse(file, "returned no table");
  if (theirs->struct_size < offsetof(vitrove_store_plugin, name)) refuse(file, "table too short");
  if (theirs->abi_version != VITROVE_STORE_PLUGIN_ABI) {
    refuse(file, "made for plugin ABI " + std::to_string(theirs->abi_version) +
                     ", this program has " + std::to_string(VITROVE_STORE_PLUGIN_ABI));
  }
  if (theirs->struct_size < mandatory_bytes) refuse(file, "table too short");
  vitrove_store_plugin table{};
  std::memcpy(&table, theirs, std::min(theirs->struct_size, sizeof table));
  if (table.name == nullptr || !is_store_name(table.name)) refuse(file, "has no proper name");
  const bool complete = table.create != nullptr && table.destroy != nullptr &&
                        table.batch_get != nullptr && table.batch_put != nullptr &&
                        table.batch_is_exist != nullptr && table.capabilities != nullptr &&
                        table.health != nullptr;
  if (!complete) refuse(file, "a function that is not optional is missing");
  return table;
}

std::vector<fs::path> plugin_directories() {
  const std::string variable = environment("VITROVE_PLUGIN_PATH").value_or("");
  std::string_view rest = variable;
  std::vector<fs::path> directories;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    if (!one.empty()) directories.emplace_back(one);
  }
  return directories;
}

}  // namespace

std::shared_ptr<const PluginLibrary> PluginLibrary::open(const fs::path& file) {
  std::error_code unknown;
  if (!fs::exists(file, unknown)) refuse(file, "no such file");
  const fs::path absolute = fs::absolute(file);  // without a slash the loader would search
  void* const opened = ::dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) refuse(file, "cannot be loaded", last_loader_error());
  std::shared_ptr<void> handle(opened, [](void* library) { ::dlclose(library); });
  void* const symbol = ::dlsym(opened, "vitrove_store_plugin_v1");
  if (symbol == nullptr) {
    refuse(file, "does not export vitrove_store_plugin_v1", last_loader_error());
  }
  const auto entry = reinterpret_cast<vitrove_store_plugin_entry>(symbol);
  const vitrove_store_plugin table = checked_copy(file, entry());
  return std::make_shared<const PluginLibrary>(std::move(handle), table);
}

fs::path find_plugin(const std::string& name) {
  for (const fs::path& directory : plugin_directories()) {
    fs::path file = directory / (std::string(file_prefix) + name + std::string(file_suffix));
    std::error_code unreadable;
    if (fs::exists(file, unreadable)) return file;
  }
  return {};
}

std::vector<std::string> plugins_on_path() {
  std::vector<std::string> names;
  for (const fs::path& directory : plugin_directories()) {
    std::error_code unreadable;
    for (fs::directory_iterator at(directory, unreadable), end; !unreadable && at != end;
         at.increment(unreadable)) {
      std::string name = at->path().filename().string();
      if (!name.starts_with(file_prefix) || !name.ends_with(file_suffix)) continue;
      name = name.substr(file_prefix.size());
      name.resize(name.size() - std::min(name.size(), file_suffix.size()));
      if (is_store_name(name)) names.push_back(name);
    }
  }
  return names;
}

}  // namespace vitrove
