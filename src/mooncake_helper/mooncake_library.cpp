#include "mooncake_helper/mooncake_library.h"

#include <stdexcept>

#include <dlfcn.h>

namespace vitrove::mooncake {
namespace {

// dlerror() keeps its text per thread in glibc.
std::string last_error() {
  const char* error = ::dlerror();  // NOLINT(concurrency-mt-unsafe)
  return error == nullptr ? "unknown error" : error;
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  void* const symbol = ::dlsym(library, name);
  if (symbol == nullptr) {
    throw std::runtime_error(std::string("the Mooncake library has no function ") + name +
                             " (built without WITH_STORE_C_SHARED, or of another release?)");
  }
  function = reinterpret_cast<Function>(symbol);
}

}  // namespace

MooncakeLibrary::MooncakeLibrary(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error("the Mooncake library cannot be loaded: " + last_error());
  }
  find(library, "mooncake_store_create", create);
  find(library, "mooncake_store_destroy", destroy);
  find(library, "mooncake_store_setup", setup);
  find(library, "mooncake_store_register_buffer", register_buffer);
  find(library, "mooncake_store_unregister_buffer", unregister_buffer);
  find(library, "mooncake_store_batch_put_from", batch_put_from);
  find(library, "mooncake_store_batch_get_into", batch_get_into);
  find(library, "mooncake_store_batch_is_exist", batch_is_exist);
  find(library, "mooncake_store_get_size", get_size);
  find(library, "mooncake_store_remove", remove);
}

}  // namespace vitrove::mooncake
