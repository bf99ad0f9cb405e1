// A store plugin's shared library, opened and checked.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrove/embedding_store_factory.h"
#include "vitrove/store_plugin.h"

namespace vitrove {

class PluginLibrary {
 public:
  // Throws Error{invalid_argument}: file missing, not a library, symbol missing, another ABI, an
  // incomplete table.
  static std::shared_ptr<const PluginLibrary> open(const std::filesystem::path& file);

  explicit PluginLibrary(std::shared_ptr<void> handle, const vitrove_store_plugin& table)
      : handle_(std::move(handle)), table_(table) {}

  // A whole table of this build's size: what the plugin's lacks is zero.
  const vitrove_store_plugin& table() const { return table_; }

 private:
  std::shared_ptr<void> handle_;  // closes the library
  vitrove_store_plugin table_;
};

// Where a plugin of that name would be: the first such file on VITROVE_PLUGIN_PATH, or an empty
// path.
std::filesystem::path find_plugin(const std::string& name);
// Names of the plugins on VITROVE_PLUGIN_PATH, whether they can be loaded or not.
std::vector<std::string> plugins_on_path();

// A store of that plugin; keeps the library open. Throws Error{invalid_argument} for an unknown
// option or a failing constructor.
std::unique_ptr<EmbeddingStore> create_plugin_store(std::shared_ptr<const PluginLibrary> library,
                                                    const StoreUrl& url);

}  // namespace vitrove
