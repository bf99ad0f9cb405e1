// EmbeddingKey: the one name of an embedding, in stores, logs, API and file names.
//
// A key is SHA-256 over a versioned, typed, length-framed encoding of everything that can change
// the embedding's bytes (design section 3). Two items that may have different rows never share a
// key; the same item has the same key in every process, on every machine, for ever: golden vectors
// (tests/data/golden_keys.json), made by a second implementation, pin it. The encoding is described
// in docs/value-format.md. Numbers are little-endian whatever the host.
//
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/digest.h"
#include "vitrove/params.h"
#include "vitrove/types.h"

namespace vitrove {

struct EmbeddingKey {
  Digest256 digest;

  // "vt1-" and 64 lower-case hex digits.
  std::string text() const;
  // That spelling and no other; anything else is nothing.
  static std::optional<EmbeddingKey> parse(std::string_view text);

  auto operator<=>(const EmbeddingKey&) const = default;
};

// What the `content` part of a key is; the forms are typed so that they never meet.
enum class ContentForm : std::uint8_t {
  media_bytes = 1,  // SHA-256 of the media bytes exactly as received
  features = 2,     // feature_digest() of the preprocessed tensors
  host_id = 3,      // SHA-256 of a library host's opaque identifier
};

// Raised whenever the output bytes of a decoder or of a preprocessing family may change.
struct PipelineVersion {
  std::string name;  // "jpeg", "png", "clip", ...
  std::uint32_t version = 0;
  auto operator<=>(const PipelineVersion&) const = default;
};

struct KeyParts {
  ContentForm form = ContentForm::media_bytes;
  Digest256 content;
  Modality modality = Modality::image;
  Digest256 model_fingerprint;
  std::vector<PipelineVersion> pipeline;  // a set: sorted, repetitions dropped
  ResolvedParams preprocessing;
  DType dtype = DType::float32;
  std::uint32_t dim = 0;
  std::string row_meaning;  // "tokens", "packed", "chw": what one row is
  std::uint64_t epoch = 0;
  std::string tenant;  // empty by default; from the authenticated side only
};

// Throws Error{invalid_argument} when a parameter is NaN.
EmbeddingKey make_key(const KeyParts& parts);

// One tensor of a preprocessed item, for the feature digest.
struct FeatureTensor {
  std::string name;
  std::string dtype;  // "float32", "int64", ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// Digest of preprocessed tensors with names, shapes and dtypes, plus grid and side data (encoded by
// SideData::encode). Order of tensors counts. The bytes are hashed where they are.
Digest256 feature_digest(std::span<const FeatureTensor> tensors,
                         std::span<const std::byte> side_data);

// Digest under which a tenant id stands in a value's header (empty id: all zero bytes).
Digest256 tenant_digest(std::string_view tenant);

}  // namespace vitrove

template <>
struct std::hash<vitrove::EmbeddingKey> {
  std::size_t operator()(const vitrove::EmbeddingKey& key) const noexcept {
    return vitrove::DigestHash{}(key.digest);
  }
};
