#include "cache/put_value.h"

#include <cstring>
#include <span>
#include <utility>

namespace vitrove {
namespace {

ValueHeader alias_header(const EmbeddingKey& alias, const ValueHeader& of,
                         std::span<const std::byte> side) {
  ValueHeader header = of;
  header.kind = ValueKind::alias;
  header.key = alias;
  header.rows = 0;
  header.side_bytes = static_cast<std::uint32_t>(side.size());
  PayloadChecksum checksum;
  checksum.update(side);
  header.payload_checksum = checksum.finish();
  return header;
}

}  // namespace

std::shared_ptr<PutValue> put_value_of(CacheCore& core, const EntryPin& entry) {
  auto value = std::make_shared<PutValue>();
  value->header = entry->details->header;
  value->stored_under = entry->key;
  value->stored_bytes = value->header.value_bytes();
  if (entry->pooled) {
    value->entry = entry.another();
    return value;
  }
  const std::uint64_t bytes = value->header.value_bytes();
  auto staging = core.pool().borrow_staging(bytes);
  if (!staging) return nullptr;
  std::byte* out = staging->bytes().data();
  const auto append = [&out](std::span<const std::byte> part) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    out += part.size();
  };
  append(encode_header(value->header));
  for (const auto& run : entry->runs) append(run);
  append(entry->details->side.bytes);
  value->staging = std::move(*staging);
  value->staged_bytes = bytes;
  return value;
}

std::shared_ptr<PutValue> alias_value_of(const EmbeddingKey& alias, const EntryPin& entry) {
  auto value = std::make_shared<PutValue>();
  SideData side;
  side.alias_target = entry->key;
  value->side = side.encode();
  value->header = alias_header(alias, entry->details->header, value->side);
  value->stored_under = entry->key;
  value->stored_bytes = entry->details->header.value_bytes();
  return value;
}

}  // namespace vitrove
