#include "server/item_filler.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "base/stoppable_wait.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// A future cannot be woken by a stop token, so what is waited for is this. Shared with the batcher,
// which may be done only after the request has left.
class Readiness {
 public:
  void set() {
    {
      const std::lock_guard lock(mutex_);
      is_ready_ = true;
    }
    changed_.notify_one();
  }

  // Throws Error{cancelled} or Error{deadline_exceeded}, unless it was ready before.
  void await(const RequestContext& context) {
    std::unique_lock lock(mutex_);
    if (wait_until(changed_, lock, context.cancel, context.deadline, [this] { return is_ready_; }))
      return;
    if (context.cancel.stop_requested())
      throw Error(ErrorCode::cancelled, "the request was cancelled");
    throw Error(ErrorCode::deadline_exceeded, "the request took too long");
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_ready_ = false;
};

EncodeResult encode(EncodeBatcher& batcher, std::shared_ptr<const PreprocessedItem> item,
                    const std::stop_token& wanted, const RequestContext& context) {
  const auto ready = std::make_shared<Readiness>();
  auto future = batcher.submit(std::move(item), wanted, [ready] { ready->set(); });
  ready->await(context);
  return future.get();
}

bool is_about_the_item(ErrorCode code) {
  return code == ErrorCode::invalid_argument || code == ErrorCode::too_large ||
         code == ErrorCode::unsupported_format;
}

std::uint64_t tensor_bytes(const PreprocessedItem& item) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : item.tensors) bytes += tensor.bytes().size();
  return bytes;
}

// Tensors with their share of the budget, which the lease needs for as long as it lives.
struct LeasedItem {
  std::shared_ptr<MemoryBudget> budget;
  MemoryLease lease;
  PreprocessedItem item;
};

EncodedRows rows_of(const EncodeResult& result, const PreprocessedItem& item) {
  EncodedRows rows;
  rows.bytes = result.output.bytes;
  rows.rows = result.output.rows;
  rows.side = item.side;
  if (!rows.side.grid) rows.side.grid = item.grid;
  if (result.output.grid) rows.side.grid = result.output.grid;
  rows.encode_cost = result.cost;
  return rows;
}

void check_row_count(const Encoder& encoder, const PreprocessedItem& item, std::uint32_t rows) {
  const auto expected = encoder.token_count(item);
  if (!expected || *expected == rows) return;
  throw Error(ErrorCode::internal, "the encoder gave a wrong number of rows",
              std::to_string(rows) + " instead of " + std::to_string(*expected));
}

// Noise, so that no layer below can know the answer already.
RgbImage probe_picture() {
  RgbImage picture;
  picture.width = picture.height = 64;
  picture.pixels.resize(picture.row_bytes() * picture.height);
  std::minstd_rand random(std::random_device{}());
  std::ranges::generate(picture.pixels, [&] { return static_cast<std::uint8_t>(random() >> 8); });
  return picture;
}

std::uint32_t decode_slots(std::uint32_t wanted) {
  return wanted != 0 ? wanted : std::max(2U, std::thread::hardware_concurrency());
}

}  // namespace

ItemFiller::ItemFiller(const ServerConfig& config)
    : budget_(std::make_shared<MemoryBudget>(config.max_decode_bytes)),
      turns_(decode_slots(config.decode_threads)) {
  limits_.max_item_bytes = config.max_item_bytes;
  limits_.max_pixels = config.max_image_pixels;
}

std::optional<EncodedItem> ItemFiller::fill(ModelSlot& slot, const PreparedItem& item,
                                            const KeyScope& scope, FillTicket& ticket,
                                            const RequestContext& context, Patience patience) {
  try {
    std::shared_ptr<const PreprocessedItem> tensors;
    if (patience == Patience::none) {
      ticket.begin_claim(context);
      tensors = preprocess(slot, item, context);
    }
    auto claim = ticket.claim(context, patience == Patience::wait);
    switch (claim.outcome) {
      case FillTicket::Claim::claimed_elsewhere:
        return std::nullopt;
      case FillTicket::Claim::served:
        return EncodedItem{item.expectation.key, item.modality, claim.source,
                           std::move(claim.view)};
      case FillTicket::Claim::encode_it:
        break;
    }
    if (!tensors) tensors = preprocess(slot, item, context);
    return encode_item(slot, item, tensors, scope, ticket, context);
  } catch (const Error& error) {
    if (is_about_the_item(error.code())) {
      ticket.fail(error);
    } else {
      // Ours alone: its end hands the fill to a follower.
      const FillTicket given_up = std::move(ticket);
    }
    throw;
  }
}

EncodedItem ItemFiller::encode_item(ModelSlot& slot, const PreparedItem& item,
                                    const std::shared_ptr<const PreprocessedItem>& tensors,
                                    const KeyScope& scope, FillTicket& ticket,
                                    const RequestContext& context) {
  EncodedItem encoded;
  encoded.key = item.expectation.key;
  encoded.modality = item.modality;
  const auto feature = slot.expect(ContentForm::features, tensors->feature_digest(), item.modality,
                                   item.params, scope);
  if (auto twin = ticket.resolve_features(feature.key, context)) {
    encoded.view = std::move(twin->first);
    encoded.source = twin->second;
    return encoded;
  }
  const EncodeResult result = encode(slot.batcher(), tensors, context.cancel, context);
  check_row_count(slot.encoder(), *tensors, result.output.rows);
  encoded.view = ticket.publish(rows_of(result, *tensors));
  encoded.source = Source::encoded;
  return encoded;
}

std::shared_ptr<const PreprocessedItem> ItemFiller::preprocess(ModelSlot& slot,
                                                               const PreparedItem& item,
                                                               const RequestContext& context) {
  require_supported(item.modality);
  const Preprocessor& preprocessor = slot.encoder().preprocessor();
  DecodeContext decode{budget_.get(), context.deadline, context.cancel};
  // Asked between the header and the pixels: what came before was cheap, and needed no turn.
  std::optional<DecodeTurns::Turn> turn;
  decode.bytes_beside = [&](std::uint32_t width, std::uint32_t height) {
    turn.emplace(turns_.enter(std::uint64_t{width} * height, context.deadline, context.cancel));
    return preprocessor.bytes_beside(width, height, item.params);
  };
  DecodedImage decoded = decode_image(*item.bytes, limits_, decode);
  auto tensors = std::make_shared<LeasedItem>();
  tensors->item = preprocessor.run(decoded.image, item.params);
  tensors->budget = budget_;
  tensors->lease = std::move(decoded.lease);
  tensors->lease.shrink_to(tensor_bytes(tensors->item));
  return {tensors, &tensors->item};
}

void ItemFiller::probe(ModelSlot& slot, const RequestContext& context) {
  const Modality modality = slot.default_modality();
  require_supported(modality);
  const auto params = slot.resolve(modality, {});
  auto item = std::make_shared<const PreprocessedItem>(
      slot.encoder().preprocessor().run(probe_picture(), params));
  slot.encoder().leave_out(item);
  std::stop_source gone;
  try {
    const EncodeResult result = encode(slot.batcher(), item, gone.get_token(), context);
    check_row_count(slot.encoder(), *item, result.output.rows);
    if (result.output.rows == 0 || !all_finite(result.output.bytes, slot.info().dtype)) {
      throw Error(ErrorCode::internal, "the encoder gave no usable rows");
    }
  } catch (...) {
    gone.request_stop();
    throw;
  }
}

}  // namespace vitrove
