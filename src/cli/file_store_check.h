// What doctor says of a file store beyond whether it works: the place where it is or would be, and
// whether its capacity fits there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vitrove/embedding_store.h"
#include "vitrove/embedding_store_factory.h"

namespace vitrove::cli {

struct Remark {
  enum class Kind { note, warning, bad } kind = Kind::note;
  std::string words;
};
using Remarks = std::vector<Remark>;

// Of a directory without a store: whether one could be made there. Tries it out, and leaves nothing
// behind. `is_default`: nobody has named the directory, so that it is not there is no mistake.
Remarks remarks_on_new_place(const std::filesystem::path& root, bool is_default);

// Whether the capacity of the URL fits to the file system, to what a store holds already and to
// what its servers keep to, as `health` tells; and what kind of file system it is.
Remarks remarks_on_capacity(const StoreUrl& url, const StoreHealth& health);

}  // namespace vitrove::cli
