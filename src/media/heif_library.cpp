#include "media/heif_library.h"

#include <memory>
#include <optional>
#include <string>

#include <dlfcn.h>

#include "base/environment.h"

namespace vitrove {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The library stays open for good: decoders inside it register themselves once.
std::optional<HeifLibrary> open_library() {
  const std::string name = environment("VITROVE_LIBHEIF_LIBRARY").value_or("libheif.so.1");
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  HeifLibrary heif;
  const bool has_all =
      find(library, "heif_context_alloc", heif.context_alloc) &&
      find(library, "heif_context_free", heif.context_free) &&
      find(library, "heif_context_read_from_memory_without_copy",
           heif.context_read_from_memory_without_copy) &&
      find(library, "heif_context_get_primary_image_handle",
           heif.context_get_primary_image_handle) &&
      find(library, "heif_image_handle_get_width", heif.image_handle_get_width) &&
      find(library, "heif_image_handle_get_height", heif.image_handle_get_height) &&
      find(library, "heif_image_handle_has_alpha_channel", heif.image_handle_has_alpha_channel) &&
      find(library, "heif_image_handle_release", heif.image_handle_release) &&
      find(library, "heif_decode_image", heif.decode_image) &&
      find(library, "heif_image_get_width", heif.image_get_width) &&
      find(library, "heif_image_get_height", heif.image_get_height) &&
      find(library, "heif_image_get_plane_readonly", heif.image_get_plane_readonly) &&
      find(library, "heif_image_release", heif.image_release);
  if (!has_all) return std::nullopt;
  find(library, "heif_context_set_max_decoding_threads", heif.context_set_max_decoding_threads);
  find(library, "heif_get_version", heif.get_version);
  return heif;
}

}  // namespace

const HeifLibrary* heif_library() {
  static const std::optional<HeifLibrary> library = open_library();
  return library ? &*library : nullptr;
}

}  // namespace vitrove
