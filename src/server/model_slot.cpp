#include "server/model_slot.h"

#include <algorithm>
#include <utility>

#include "vitrove/error.h"
#include "vitrove/media.h"

namespace vitrove {
namespace {

std::vector<PipelineVersion> pipeline_versions(Modality modality, const Preprocessor& family) {
  std::vector<PipelineVersion> versions = family.versions();
  const auto decoders = decoder_versions(modality);
  versions.insert(versions.end(), decoders.begin(), decoders.end());
  std::ranges::sort(versions);
  const auto repeated = std::ranges::unique(versions);
  versions.erase(repeated.begin(), repeated.end());
  return versions;
}

}  // namespace

ModelSlot::ModelSlot(std::shared_ptr<Encoder> encoder, std::shared_ptr<EncoderMeter> meter,
                     BatcherOptions options)
    : encoder_(std::make_shared<MeteredEncoder>(std::move(encoder), std::move(meter))),
      batcher_(encoder_, options) {
  for (const Modality modality : info().modalities) {
    pipelines_[modality] = pipeline_versions(modality, encoder_->preprocessor());
  }
}

Modality ModelSlot::default_modality() const {
  return info().modalities.empty() ? Modality::image : info().modalities.front();
}

bool ModelSlot::takes(std::optional<Modality> modality) const {
  return modality && pipelines_.contains(*modality);
}

Modality ModelSlot::modality_for(const MediaKind& kind) const {
  const Modality fallback = default_modality();
  if (kind.can_be(fallback)) return fallback;
  if (takes(kind.own())) return *kind.own();
  // Nothing that it could be is taken; the decoder of its format says best what is missing.
  const auto by_format = modality_of(kind.format());
  return takes(by_format) ? *by_format : fallback;
}

void ModelSlot::require_modality(Modality modality) const {
  if (pipelines_.contains(modality)) return;
  std::string known;
  for (const auto& [name, versions] : pipelines_) {
    known += (known.empty() ? "" : ", ") + std::string(to_string(name));
  }
  throw Error(ErrorCode::unsupported_format,
              "this encoder does not take " + std::string(to_string(modality)) + ", only " + known);
}

ResolvedParams ModelSlot::resolve(Modality modality, std::string_view kwargs) const {
  return encoder_->preprocessor().resolve(modality, kwargs);
}

ValueExpectation ModelSlot::expect(ContentForm form, const Digest256& content, Modality modality,
                                   const ResolvedParams& params, const KeyScope& scope) const {
  KeyParts parts;
  parts.form = form;
  parts.content = content;
  parts.modality = modality;
  parts.model_fingerprint = info().fingerprint;
  parts.pipeline = pipelines_.at(modality);
  parts.preprocessing = params;
  parts.dtype = info().dtype;
  parts.dim = info().dim;
  parts.row_meaning = info().row_meaning;
  parts.epoch = scope.epoch;
  parts.tenant = scope.tenant;

  ValueExpectation expected;
  expected.key = make_key(parts);
  expected.model_fingerprint = parts.model_fingerprint;
  expected.tenant = tenant_digest(scope.tenant);
  expected.modality = modality;
  expected.dtype = parts.dtype;
  expected.dim = parts.dim;
  return expected;
}

}  // namespace vitrove
