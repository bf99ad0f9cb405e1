// ModelSlot: one loaded encoder with its batcher and what of it goes into keys. A reload makes a
// new slot; requests keep the slot that they began with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "media/media_kind.h"
#include "server/metered_encoder.h"
#include "vitrove/embedding_key.h"
#include "vitrove/encode_batcher.h"
#include "vitrove/encoder.h"
#include "vitrove/value_format.h"

namespace vitrove {

// Who asks, as far as it shapes keys.
struct KeyScope {
  std::uint64_t epoch = 0;
  std::string tenant;
};

class ModelSlot {
 public:
  ModelSlot(std::shared_ptr<Encoder> encoder, std::shared_ptr<EncoderMeter> meter,
            BatcherOptions options);

  const EncoderInfo& info() const { return encoder_->info(); }
  MeteredEncoder& encoder() { return *encoder_; }
  EncodeBatcher& batcher() { return batcher_; }

  // The modality of an item that names none, of whose content nothing is known.
  Modality default_modality() const;
  // The same where the content is known: what it is taken as by default, else its own kind where
  // the encoder takes that.
  Modality modality_for(const MediaKind& kind) const;
  // Throws Error{unsupported_format} naming what the encoder takes.
  void require_modality(Modality modality) const;
  ResolvedParams resolve(Modality modality, std::string_view kwargs) const;

  // What the controller needs to know about an item: its key and what the value must be.
  ValueExpectation expect(ContentForm form, const Digest256& content, Modality modality,
                          const ResolvedParams& params, const KeyScope& scope) const;

 private:
  bool takes(std::optional<Modality> modality) const;

  std::shared_ptr<MeteredEncoder> encoder_;
  // One version for all decoders of a modality: a digest without bytes has no format to go by, and
  // must lead to the key that the bytes led to.
  std::map<Modality, std::vector<PipelineVersion>> pipelines_;
  EncodeBatcher batcher_;
};

}  // namespace vitrove
