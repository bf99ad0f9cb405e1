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

VideoClip probe_clip() {
  VideoClip clip;
  clip.frames = {probe_picture(), probe_picture()};
  clip.timestamps = {0.0, 0.5};
  clip.sample_fps = 2;
  clip.seconds = 1;
  return clip;
}

AudioClip probe_sound(std::uint32_t rate) {
  AudioClip clip{std::vector<float>(rate), rate};
  std::minstd_rand random(std::random_device{}());
  std::uniform_real_distribution<float> samples(-1, 1);
  std::ranges::generate(clip.samples, [&] { return samples(random); });
  return clip;
}

PreprocessedItem probe_item(const Preprocessor& preprocessor, Modality modality,
                            const ResolvedParams& params) {
  if (modality == Modality::video) return preprocessor.run_video(probe_clip(), params);
  if (modality == Modality::image) return preprocessor.run(probe_picture(), params);
  return preprocessor.run_audio(probe_sound(preprocessor.audio_rate(params)), params);
}

std::uint64_t bytes_beside(const Preprocessor& preprocessor, const PreparedItem& item,
                           const MediaShape& shape) {
  switch (item.modality) {
    case Modality::video:
      return preprocessor.video_bytes_beside(shape, item.params);
    case Modality::audio:
      return preprocessor.audio_bytes_beside(shape.samples, item.params);
    case Modality::image:
      break;
  }
  return preprocessor.bytes_beside(shape.width, shape.height, item.params);
}

// What is done before the pixels is cheap for most pictures, and needs no turn. Of clips and sounds
// all packets are read, and of HEIC and AVIF a library looks at every item that is inside.
bool has_costly_header(const PreparedItem& item) {
  if (item.modality != Modality::image) return true;
  const MediaFormat format = sniff(*item.bytes);
  return format == MediaFormat::heic || format == MediaFormat::avif;
}

std::uint32_t decode_slots(std::uint32_t wanted) {
  return wanted != 0 ? wanted : std::max(2U, std::thread::hardware_concurrency());
}

}  // namespace

ItemFiller::ItemFiller(const ServerConfig& config)
    : budget_(std::make_shared<MemoryBudget>(config.max_decode_bytes)),
      turns_(decode_slots(config.decode_threads)) {
  image_limits_.max_item_bytes = config.max_item_bytes;
  image_limits_.max_pixels = config.max_image_pixels;
  video_limits_.max_item_bytes = config.max_item_bytes;
  video_limits_.max_frame_pixels = config.max_video_pixels;
  video_limits_.max_frames = config.max_video_frames;
  video_limits_.max_seconds = config.max_video_seconds;
  audio_limits_.max_item_bytes = config.max_item_bytes;
  audio_limits_.max_seconds = config.max_audio_seconds;
  audio_limits_.max_samples = config.max_audio_samples;
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
  const Preprocessor& preprocessor = slot.encoder().preprocessor();
  DecodeContext decode{budget_.get(), context.deadline, context.cancel};
  const SlotGate::Rank place = turns_.draw();
  std::optional<DecodeTurns::Turn> turn;
  const auto take_turn = [&](std::uint64_t work_pixels) {
    if (turn && turn->is_good_for(work_pixels)) return;
    turn.reset();
    turn.emplace(turns_.enter(place, work_pixels, context.deadline, context.cancel));
  };
  if (has_costly_header(item)) take_turn(0);
  // Asked between the header and the pixels.
  decode.bytes_beside = [&](const MediaShape& shape) {
    take_turn(shape.work_pixels);
    return bytes_beside(preprocessor, item, shape);
  };
  decode.jpeg_reduction = [&](std::uint32_t width, std::uint32_t height) {
    return preprocessor.jpeg_reduction(width, height, item.params);
  };
  auto [made, lease] = decode_and_run(preprocessor, item, decode);
  auto tensors = std::make_shared<LeasedItem>();
  tensors->item = std::move(made);
  tensors->budget = budget_;
  tensors->lease = std::move(lease);
  tensors->lease.shrink_to(tensor_bytes(tensors->item));
  return {tensors, &tensors->item};
}

std::pair<PreprocessedItem, MemoryLease> ItemFiller::decode_and_run(
    const Preprocessor& preprocessor, const PreparedItem& item,
    const DecodeContext& context) const {
  switch (item.modality) {
    case Modality::video: {
      const auto run = preprocessor.start_video(item.params);
      StreamedVideo decoded = decode_video(*item.bytes, preprocessor.video_sampling(item.params),
                                           video_limits_, *run, context);
      return {run->finish(decoded.times), std::move(decoded.lease)};
    }
    case Modality::audio: {
      DecodedAudio decoded =
          decode_audio(*item.bytes, preprocessor.audio_rate(item.params), audio_limits_, context);
      return {preprocessor.run_audio(decoded.clip, item.params), std::move(decoded.lease)};
    }
    case Modality::image:
      break;
  }
  DecodedImage decoded = decode_image(*item.bytes, image_limits_, context);
  return {preprocessor.run(decoded.image, item.params), std::move(decoded.lease)};
}

void ItemFiller::probe(ModelSlot& slot, const RequestContext& context) {
  const Modality modality = slot.default_modality();
  const auto params = slot.resolve(modality, {});
  auto item = std::make_shared<const PreprocessedItem>(
      probe_item(slot.encoder().preprocessor(), modality, params));
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
