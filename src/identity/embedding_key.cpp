#include "vitrove/embedding_key.h"

#include <algorithm>

#include "identity/canonical_encoder.h"

namespace vitrove {
namespace {

constexpr std::uint64_t scheme_version = 1;
constexpr std::string_view text_prefix = "vt1-";

std::vector<PipelineVersion> as_set(std::vector<PipelineVersion> pipeline) {
  std::sort(pipeline.begin(), pipeline.end());
  pipeline.erase(std::unique(pipeline.begin(), pipeline.end()), pipeline.end());
  return pipeline;
}

bool is_lower_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string EmbeddingKey::text() const { return std::string(text_prefix) + to_hex(digest); }

std::optional<EmbeddingKey> EmbeddingKey::parse(std::string_view text) {
  if (!text.starts_with(text_prefix)) return std::nullopt;
  text.remove_prefix(text_prefix.size());
  const auto digest = parse_digest(text);
  if (!digest || !is_lower_hex(text)) return std::nullopt;  // one key, one spelling
  return EmbeddingKey{*digest};
}

EmbeddingKey make_key(const KeyParts& parts) {
  CanonicalEncoder encoder;
  encoder.text("vitrove.key");
  encoder.natural(scheme_version);
  encoder.natural(static_cast<std::uint64_t>(parts.form));
  encoder.digest(parts.content);
  encoder.natural(static_cast<std::uint64_t>(parts.modality));
  encoder.digest(parts.model_fingerprint);
  const auto pipeline = as_set(parts.pipeline);
  encoder.list_head(pipeline.size());
  for (const PipelineVersion& step : pipeline) {
    encoder.text(step.name);
    encoder.natural(step.version);
  }
  encoder.params(parts.preprocessing);
  encoder.natural(static_cast<std::uint64_t>(parts.dtype));
  encoder.natural(parts.dim);
  encoder.text(parts.row_meaning);
  encoder.natural(parts.epoch);
  encoder.text(parts.tenant);
  return EmbeddingKey{sha256(encoder.view())};
}

Digest256 feature_digest(std::span<const FeatureTensor> tensors,
                         std::span<const std::byte> side_data) {
  Sha256 hash;
  CanonicalEncoder encoder;
  encoder.text("vitrove.features");
  encoder.natural(scheme_version);
  encoder.list_head(tensors.size());
  for (const FeatureTensor& tensor : tensors) {
    encoder.text(tensor.name);
    encoder.text(tensor.dtype);
    encoder.list_head(tensor.shape.size());
    for (const std::int64_t extent : tensor.shape) encoder.integer(extent);
    encoder.bytes_head(tensor.bytes.size());
    hash.update(encoder.view());
    hash.update(tensor.bytes);
    encoder.clear();
  }
  encoder.bytes_head(side_data.size());
  hash.update(encoder.view());
  hash.update(side_data);
  return hash.finish();
}

Digest256 tenant_digest(std::string_view tenant) {
  if (tenant.empty()) return Digest256{};
  CanonicalEncoder encoder;
  encoder.text("vitrove.tenant");
  encoder.natural(scheme_version);
  encoder.text(tenant);
  return sha256(encoder.view());
}

}  // namespace vitrove
