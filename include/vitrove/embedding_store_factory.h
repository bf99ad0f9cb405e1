// EmbeddingStoreFactory: store URLs to stores.
//
//   memory:?capacity=1GiB
//   file:///var/lib/vitrove?capacity=50GiB&fsync=false
//   NAME://…                  another (redis, mooncake, …), or a plugin on VITROVE_PLUGIN_PATH
//   /path/to/plugin.so?…      a plugin by path
//
// Built-in backends are listed explicitly in `with_builtins()`; there is no static-initialiser
// magic. A plugin is a shared library with one exported C symbol (store_plugin.h), found as
// `libvitrove_store_NAME.so` on the colon-separated VITROVE_PLUGIN_PATH.
//
// Every fault is one clear Error{invalid_argument}: unknown name (the message lists what is
// available), file missing, symbol missing, ABI mismatch, creation failing, unknown option (the
// message lists what is known), name already registered (field case B79). Passwords never appear in
// messages: use `redact_url` for logs. what() names no path; detail() does.
//
// Thread-safe. The factory must outlive no store: a plugin's library is kept open by its stores.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/embedding_store.h"

namespace vitrove {

// A parsed store URL: scheme ":" ["//" [user[:password]@] host[:port]] path ["?" options], where
// options are name=value pairs joined by "&". Percent-encoding is decoded in every part but the
// scheme; a "@", ":", "/", "?" or "#" inside a password has to be written that way.
struct StoreUrl {
  std::string scheme;  // lower-case
  std::string user;
  std::string password;
  // Authority without user info and port; an IPv6 address without its brackets. A list of hosts
  // ("a:1,b:2") stands here whole, ports included.
  std::string host;
  int port = 0;  // 0 = not given
  std::string path;
  std::map<std::string, std::string> options;

  // Throws Error{invalid_argument}. An option given twice is an error.
  static StoreUrl parse(std::string_view text);

  // The same URL, percent-encoded anew, without its options: what a plugin is given. Holds the
  // password.
  std::string text() const;
};

// The URL with its password, and options whose names speak of secrets, replaced by "***". Takes any
// text: what is not a well-formed URL rather loses too much than too little.
std::string redact_url(std::string_view text);

// Reads options and remembers which were known, so that the rest can be refused.
class StoreOptions {
 public:
  explicit StoreOptions(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  std::string text(const std::string& name, const std::string& fallback);
  std::uint64_t bytes(const std::string& name, std::uint64_t fallback);
  std::chrono::microseconds duration(const std::string& name, std::chrono::microseconds fallback);
  std::int64_t integer(const std::string& name, std::int64_t fallback);
  bool flag(const std::string& name, bool fallback);

  // Throws Error{invalid_argument} naming the first option nobody asked for, and the known ones.
  // A creator calls it before it constructs anything, so that a typing error leaves no trace.
  void reject_unknown() const;

 private:
  const std::string* find(const std::string& name);
  std::map<std::string, std::string> values_;
  std::vector<std::string> known_;
};

class EmbeddingStoreFactory {
 public:
  using Creator = std::function<std::unique_ptr<EmbeddingStore>(const StoreUrl&, StoreOptions&)>;

  EmbeddingStoreFactory() = default;
  // With memory, file, redis and mooncake registered.
  static EmbeddingStoreFactory with_builtins();

  EmbeddingStoreFactory(EmbeddingStoreFactory&&) noexcept;
  EmbeddingStoreFactory& operator=(EmbeddingStoreFactory&&) noexcept;

  // `schemes`: the URL schemes that lead here; the first is the backend's name. Names are
  // lower-case: letters, digits, "+", "-", ".", "_", a letter first.
  void register_backend(std::vector<std::string> schemes, Creator creator);

  // From a URL, or from a bare backend name with its options. The creator's unread options are
  // refused after it returns.
  std::unique_ptr<EmbeddingStore> create_backend(
      std::string_view name_or_url, const std::map<std::string, std::string>& config = {}) const;

  // Registered names and plugins found on VITROVE_PLUGIN_PATH, sorted.
  std::vector<std::string> available() const;

 private:
  std::shared_ptr<const Creator> find_creator(const std::string& scheme) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Creator>> creators_;
  std::vector<std::string> names_;
};

}  // namespace vitrove
