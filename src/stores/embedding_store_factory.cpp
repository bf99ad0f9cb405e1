#include "vitrove/embedding_store_factory.h"

#include <algorithm>

#include "stores/builtin_backends.h"
#include "stores/plugin_library.h"
#include "stores/store_name.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

[[noreturn]] void refuse_backend(const std::string& message, const std::string& detail = {}) {
  throw Error(ErrorCode::invalid_argument, message, detail);
}

bool is_path(std::string_view text) {
  return text.starts_with('/') || text.starts_with("./") || text.starts_with("../");
}

// Who names a folder means a file store in it, most likely.
void refuse_folder(const std::filesystem::path& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) return;
  refuse_backend("a store is named by its URL, and this is a folder; of a file store in it that is",
                 "file://" + std::filesystem::absolute(path).lexically_normal().string());
}

// Options of the URL and of the caller together; nobody may say a thing twice.
void add_options(const std::map<std::string, std::string>& more, StoreUrl& url) {
  for (const auto& [name, value] : more) {
    if (!url.options.emplace(name, value).second) {
      refuse_backend("store option '" + name + "' is given twice");
    }
  }
}

// "/path/to/plugin.so?a=b": options are read as those of any URL, the path is taken as it is.
StoreUrl plugin_url(std::string_view text, std::string& path) {
  const std::size_t question = text.find('?');
  path = std::string(text.substr(0, question));
  if (question == text.npos) return StoreUrl{};
  return StoreUrl::parse("plugin:" + std::string(text.substr(question)));
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

EmbeddingStoreFactory EmbeddingStoreFactory::with_builtins() {
  EmbeddingStoreFactory factory;
  factory.register_backend({"memory"}, create_memory_store);
  factory.register_backend({"file"}, create_file_store);
  // The last ones only to be refused with a clear line.
  factory.register_backend(
      {"redis", "rediss", "valkey", "valkeys", "redis+cluster", "rediss+cluster", "valkey+cluster",
       "valkeys+cluster", "redis+sentinel", "rediss+sentinel", "redis-sentinel", "rediss-sentinel",
       "valkey+sentinel", "valkeys+sentinel", "valkey-sentinel", "valkeys-sentinel"},
      create_redis_store);
  factory.register_backend({"mooncake"}, create_mooncake_store);
  return factory;
}

EmbeddingStoreFactory::EmbeddingStoreFactory(EmbeddingStoreFactory&& other) noexcept {
  *this = std::move(other);
}

EmbeddingStoreFactory& EmbeddingStoreFactory::operator=(EmbeddingStoreFactory&& other) noexcept {
  if (this == &other) return *this;
  std::scoped_lock lock(mutex_, other.mutex_);
  creators_ = std::move(other.creators_);
  names_ = std::move(other.names_);
  return *this;
}

void EmbeddingStoreFactory::register_backend(std::vector<std::string> schemes, Creator creator) {
  if (schemes.empty() || !creator) refuse_backend("a store backend needs a name and a creator");
  std::lock_guard lock(mutex_);
  for (const std::string& scheme : schemes) {
    if (!is_store_name(scheme))
      refuse_backend("'" + scheme + "' is not a name for a store backend");
    if (creators_.contains(scheme) || std::ranges::count(schemes, scheme) > 1) {
      refuse_backend("store backend '" + scheme + "' is already registered");
    }
  }
  const auto shared = std::make_shared<const Creator>(std::move(creator));
  for (const std::string& scheme : schemes) creators_.emplace(scheme, shared);
  names_.push_back(schemes.front());
}

std::shared_ptr<const EmbeddingStoreFactory::Creator> EmbeddingStoreFactory::find_creator(
    const std::string& scheme) const {
  std::lock_guard lock(mutex_);
  const auto found = creators_.find(scheme);
  return found == creators_.end() ? nullptr : found->second;
}

std::vector<std::string> EmbeddingStoreFactory::available() const {
  std::vector<std::string> names = plugins_on_path();
  {
    std::lock_guard lock(mutex_);
    names.insert(names.end(), names_.begin(), names_.end());
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::unique_ptr<EmbeddingStore> EmbeddingStoreFactory::create_backend(
    std::string_view name_or_url, const std::map<std::string, std::string>& config) const {
  if (is_path(name_or_url)) {
    std::string path;
    StoreUrl url = plugin_url(name_or_url, path);
    add_options(config, url);
    refuse_folder(path);
    const auto library = PluginLibrary::open(path);
    url.scheme = library->table().name;
    if (find_creator(url.scheme)) {
      refuse_backend("store plugin calls itself '" + url.scheme + "', which is already registered",
                     path);
    }
    return create_plugin_store(library, url);
  }

  StoreUrl url;
  if (name_or_url.find(':') != name_or_url.npos) {
    url = StoreUrl::parse(name_or_url);
  } else {
    url.scheme = lower_case(name_or_url);
    if (!is_store_name(url.scheme)) {
      refuse_backend("not a store URL or name; available are " + joined(available()),
                     redact_url(name_or_url));
    }
  }
  add_options(config, url);

  if (const auto creator = find_creator(url.scheme)) {
    StoreOptions options(url.options);
    std::unique_ptr<EmbeddingStore> store;
    try {
      store = (*creator)(url, options);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      refuse_backend("store '" + url.scheme + "' could not be created", error.what());
    }
    if (!store) refuse_backend("store '" + url.scheme + "' could not be created");
    options.reject_unknown();
    return store;
  }
  const std::filesystem::path file = find_plugin(url.scheme);
  if (file.empty()) {
    refuse_backend("unknown store '" + url.scheme + "'; available are " + joined(available()));
  }
  const auto library = PluginLibrary::open(file);
  if (url.scheme != library->table().name) {
    refuse_backend("store plugin '" + file.filename().string() + "' calls itself '" +
                       library->table().name + "'",
                   file.string());
  }
  return create_plugin_store(library, url);
}

}  // namespace vitrove
