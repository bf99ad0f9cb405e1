// Defaults of the interface: the single-buffer forms in terms of the scattered ones, and
// `unsupported` for what is optional.
#include "vitrove/embedding_store.h"

namespace vitrove {

std::string_view to_string(StoreStatus status) {
  switch (status) {
    case StoreStatus::ok:
      return "ok";
    case StoreStatus::absent:
      return "absent";
    case StoreStatus::size_mismatch:
      return "size_mismatch";
    case StoreStatus::invalid:
      return "invalid";
    case StoreStatus::too_large:
      return "too_large";
    case StoreStatus::timeout:
      return "timeout";
    case StoreStatus::cancelled:
      return "cancelled";
    case StoreStatus::unavailable:
      return "unavailable";
    case StoreStatus::no_space:
      return "no_space";
    case StoreStatus::denied:
      return "denied";
    case StoreStatus::io_error:
      return "io_error";
    case StoreStatus::unsupported:
      return "unsupported";
    case StoreStatus::conflict:
      return "conflict";
  }
  return "unknown";  // a plugin or a liar may hand us anything
}

namespace {

std::vector<StoreResult> all(std::size_t count, StoreStatus status) {
  return std::vector<StoreResult>(count, StoreResult{status});
}

// A list of one buffer for every key; the lists point into `buffers`.
template <typename Buffer>
std::vector<std::span<const Buffer>> lists_of_one(std::span<const Buffer> buffers) {
  std::vector<std::span<const Buffer>> lists;
  lists.reserve(buffers.size());
  for (const Buffer& buffer : buffers) lists.emplace_back(&buffer, 1);
  return lists;
}

}  // namespace

std::vector<StoreResult> EmbeddingStore::batch_get(std::span<const EmbeddingKey> keys,
                                                   std::span<const MutableBuffer> buffers,
                                                   const StoreContext& context) {
  if (keys.size() != buffers.size()) return all(keys.size(), StoreStatus::invalid);
  const auto lists = lists_of_one(buffers);
  return batch_get_into_multi_buffers(keys, lists, context);
}

std::vector<StoreResult> EmbeddingStore::batch_put(std::span<const EmbeddingKey> keys,
                                                   std::span<const ConstBuffer> buffers,
                                                   PutMode mode, const StoreContext& context) {
  if (keys.size() != buffers.size()) return all(keys.size(), StoreStatus::invalid);
  const auto lists = lists_of_one(buffers);
  return batch_put_from_multi_buffers(keys, lists, mode, context);
}

void EmbeddingStore::register_buffer(MutableBuffer) {}
void EmbeddingStore::unregister_buffer(MutableBuffer) {}

void EmbeddingStore::register_shared_buffer(MutableBuffer arena, int /*memfd*/) {
  register_buffer(arena);
}

std::string EmbeddingStore::get_key(const EmbeddingKey& key) const { return key.text(); }

std::vector<StoreResult> EmbeddingStore::batch_remove(std::span<const EmbeddingKey> keys,
                                                      const StoreContext&) {
  return all(keys.size(), StoreStatus::unsupported);
}

StoreResult EmbeddingStore::list(const ListOptions&, const std::function<bool(const ListedValue&)>&,
                                 const StoreContext&) {
  return {StoreStatus::unsupported};
}

StoreResult EmbeddingStore::claim(const EmbeddingKey&, std::chrono::milliseconds, ClaimToken&,
                                  const StoreContext&) {
  return {StoreStatus::unsupported};
}

StoreResult EmbeddingStore::renew(const EmbeddingKey&, const ClaimToken&, std::chrono::milliseconds,
                                  const StoreContext&) {
  return {StoreStatus::unsupported};
}

StoreResult EmbeddingStore::release(const EmbeddingKey&, const ClaimToken&, ClaimOutcome,
                                    const StoreContext&) {
  return {StoreStatus::unsupported};
}

}  // namespace vitrove
