#include "cache/entry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/cache_core.h"

namespace vitrove {

Entry::~Entry() = default;

bool Entry::has_alias(const EmbeddingKey& wanted) const noexcept {
  for (const AliasKey* alias = aliases_.load(std::memory_order_acquire); alias != nullptr;
       alias = alias->next) {
    if (same(alias->key, wanted)) return true;
  }
  return false;
}

bool Entry::add_key(const EmbeddingKey& further) {
  std::lock_guard lock(details->keys_mutex);
  if (details->keys_closed) return false;
  if (further == key) return true;
  if (details->aliases.size() >= max_aliases) return false;
  auto node = std::make_unique<AliasKey>(AliasKey{further, nullptr});
  if (!details->aliases.empty()) node->next = details->aliases.back().get();
  details->aliases.push_back(std::move(node));
  aliases_.store(details->aliases.back().get(), std::memory_order_release);
  return true;
}

std::vector<EmbeddingKey> Entry::alias_keys() const {
  std::lock_guard lock(details->keys_mutex);
  std::vector<EmbeddingKey> keys;
  for (const auto& alias : details->aliases) keys.push_back(alias->key);
  return keys;
}

void Entry::close_keys() const noexcept {
  std::lock_guard lock(details->keys_mutex);
  details->keys_closed = true;
}

void Entry::describe(std::vector<std::span<const std::byte>> run_bytes) {
  const ValueHeader& header = details->header;
  key = header.key;
  rows = header.rows;
  dim = header.dim;
  dtype = header.dtype;
  modality = header.modality;
  origin = origin_of(header.model_fingerprint, header.tenant);
  cost_us = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(header.encode_cost_us, std::numeric_limits<std::uint32_t>::max()));
  aliases_.store(nullptr, std::memory_order_relaxed);
  if (run_bytes.size() == 1) {
    only_run[0] = run_bytes[0];
    runs = only_run;
    return;
  }
  details->runs = std::move(run_bytes);
  runs = details->runs;
}

void Entry::free_self() noexcept { core->free_entry(*this); }

}  // namespace vitrove
