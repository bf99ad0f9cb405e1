// Keys, values and buffer lists for tests of stores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "vitrove/embedding_store.h"

namespace vitrove::testing {

using Bytes = std::vector<std::byte>;

inline EmbeddingKey key_number(std::uint64_t number, const std::string& family = "contract") {
  return {sha256(family + "/" + std::to_string(number))};
}

inline std::vector<EmbeddingKey> key_numbers(std::size_t count,
                                             const std::string& family = "contract") {
  std::vector<EmbeddingKey> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(key_number(i, family));
  return keys;
}

// Bytes that differ in every word for another seed, so that torn and mixed values show.
inline Bytes pattern(std::uint64_t seed, std::size_t size) {
  Bytes bytes(size);
  std::uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15u;
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + at, &state, std::min(sizeof state, size - at));
  }
  return bytes;
}

// A whole value in the value format: header, `rows` of `dim` 16-bit elements, no side data.
inline Bytes sealed_value(const EmbeddingKey& key, std::uint32_t rows, std::uint32_t dim,
                          std::uint64_t seed) {
  ValueHeader header;
  header.key = key;
  header.dtype = DType::float16;
  header.rows = rows;
  header.dim = dim;
  header.created_us = 1;
  const Bytes payload = pattern(seed, header.payload_bytes());
  PayloadChecksum checksum;
  checksum.update(payload);
  header.payload_checksum = checksum.finish();
  const HeaderBytes encoded = encode_header(header);
  Bytes value(encoded.begin(), encoded.end());
  value.insert(value.end(), payload.begin(), payload.end());
  return value;
}

// Reject::none when `value` is a whole and undamaged value of `key`.
inline Reject inspect(ConstBuffer value, const EmbeddingKey& key) {
  ValueHeader header;
  const Reject reject =
      parse_header(value.first(std::min(value.size(), value_header_size)), value.size(), header);
  if (reject != Reject::none) return reject;
  if (header.key != key) return Reject::key;
  PayloadChecksum checksum;
  checksum.update(value.subspan(value_header_size));
  return checksum.finish() == header.payload_checksum ? Reject::none : Reject::payload_checksum;
}

// `bytes` cut into buffers of the given sizes, over and over until all is covered.
template <typename Byte>
std::vector<std::span<Byte>> cut(std::span<Byte> bytes, const std::vector<std::size_t>& sizes) {
  std::vector<std::span<Byte>> pieces;
  for (std::size_t i = 0; !bytes.empty(); ++i) {
    const std::size_t count = std::min(sizes[i % sizes.size()], bytes.size());
    pieces.push_back(bytes.first(count));
    bytes = bytes.subspan(count);
  }
  return pieces;
}

inline StoreResult put_one(EmbeddingStore& store, const EmbeddingKey& key, ConstBuffer value,
                           PutMode mode = PutMode::if_absent, const StoreContext& context = {}) {
  return store.batch_put({&key, 1}, {&value, 1}, mode, context).at(0);
}

inline StoreResult get_one(EmbeddingStore& store, const EmbeddingKey& key, MutableBuffer buffer,
                           const StoreContext& context = {}) {
  return store.batch_get({&key, 1}, {&buffer, 1}, context).at(0);
}

inline StoreResult exists(EmbeddingStore& store, const EmbeddingKey& key,
                          const StoreContext& context = {}) {
  return store.batch_is_exist({&key, 1}, context).at(0);
}

inline StoreResult remove_one(EmbeddingStore& store, const EmbeddingKey& key,
                              const StoreContext& context = {}) {
  return store.batch_remove({&key, 1}, context).at(0);
}

// The value as the store has it now; empty when it is absent or a get fails. Asks for the size
// again when another writer replaced the value in between.
inline Bytes read_back(EmbeddingStore& store, const EmbeddingKey& key) {
  StoreResult found = exists(store, key);
  for (int attempt = 0; attempt < 1000 && found.ok(); ++attempt) {
    Bytes bytes(found.size);
    const StoreResult result = get_one(store, key, bytes);
    if (result.ok()) return bytes;
    if (result.status != StoreStatus::size_mismatch) break;
    found.size = result.size;
  }
  return {};
}

}  // namespace vitrove::testing
