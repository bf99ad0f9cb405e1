// ItemFiller: serves one FillTicket: claim -> decode -> preprocess -> feature lookup -> batch ->
// publish.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "server/decode_turns.h"
#include "server/encode_service.h"
#include "server/model_slot.h"
#include "vitrove/audio.h"
#include "vitrove/media.h"
#include "vitrove/memory_budget.h"
#include "vitrove/preprocess.h"
#include "vitrove/video.h"

namespace vitrove {

// An item whose identity is known.
struct PreparedItem {
  Modality modality = Modality::image;
  ResolvedParams params;
  Digest256 content;
  std::shared_ptr<const std::vector<std::byte>> bytes;  // nothing: a digest alone
  ValueExpectation expectation;
};

class ItemFiller {
 public:
  explicit ItemFiller(const ServerConfig& config);

  // What to do while another server is encoding the same: nothing comes of it without patience, and
  // the ticket is as it was. Whoever has none expects to encode it, and decodes while the store is
  // asked; whoever has some has been told already, and decodes when he knows.
  enum class Patience : std::uint8_t { none, wait };

  // Throws Error; the ticket is then given up, and followers learn what concerns the item itself.
  std::optional<EncodedItem> fill(ModelSlot& slot, const PreparedItem& item, const KeyScope& scope,
                                  FillTicket& ticket, const RequestContext& context,
                                  Patience patience);

  // Past the cache and the counters. Throws Error.
  void probe(ModelSlot& slot, const RequestContext& context);

 private:
  EncodedItem encode_item(ModelSlot& slot, const PreparedItem& item,
                          const std::shared_ptr<const PreprocessedItem>& tensors,
                          const KeyScope& scope, FillTicket& ticket, const RequestContext& context);
  // What it gives holds its share of the budget: the encoder may keep a batch's tensors for longer
  // than a request that has left.
  std::shared_ptr<const PreprocessedItem> preprocess(ModelSlot& slot, const PreparedItem& item,
                                                     const RequestContext& context);

  // The lease covers the tensors, and what was needed to make them.
  std::pair<PreprocessedItem, MemoryLease> decode_and_run(const Preprocessor& preprocessor,
                                                          const PreparedItem& item,
                                                          const DecodeContext& context) const;

  ImageLimits image_limits_;
  VideoLimits video_limits_;
  AudioLimits audio_limits_;
  std::shared_ptr<MemoryBudget> budget_;
  DecodeTurns turns_;
};

}  // namespace vitrove
