#include "server/encode_service.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <variant>

#include "base/log.h"
#include "media/data_url.h"
#include "media/media_kind.h"
#include "server/item_filler.h"
#include "server/media_intake.h"
#include "server/model_retirement.h"
#include "server/model_slot.h"
#include "server/task_group.h"
#include "server/thread_counts.h"
#include "server/worker_pool.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t fetch_threads = 16;
constexpr std::size_t fetch_helpers_per_request = 8;
// One in use, and some that end or that requests still use.
constexpr std::size_t max_living_models = 8;

FetchPolicy fetch_policy(const ServerConfig& config) {
  FetchPolicy policy;
  policy.max_item_bytes = config.max_item_bytes;
  policy.allowed_media_domains = config.allowed_media_domains;
  policy.allow_private_media = config.allow_private_media;
  policy.allowed_local_media_path = config.allowed_local_media_path;
  policy.total_timeout = std::chrono::ceil<std::chrono::milliseconds>(config.fetch_timeout);
  return policy;
}

ControllerOptions controller_options(const ServerConfig& config) {
  ControllerOptions options;
  options.pool.pool_bytes = config.pool_size;
  options.pool.page_bytes = config.page_size;
  options.pool.pin_memory = config.pin_memory;
  options.pool.huge_pages = config.huge_pages;
  options.pool.numa_node = config.numa_node;
  options.eviction_policy = config.eviction_policy;
  options.modality_shares = parse_shares(config);
  options.enable_eviction = config.enable_eviction;
  options.max_eviction_batch = config.max_eviction_batch;
  options.store_timeout = config.store_timeout;
  options.store_min_bandwidth = config.store_min_bandwidth;
  options.claims = config.claims;
  options.write_policy = config.write_policy;
  options.write_behind_delay = config.write_behind_delay;
  options.put_after_uses = config.put_after_uses;
  options.skip_cheap_puts = config.skip_cheap_puts;
  return options;
}

// Stores come last at a start: one that fails leaves no store's directory behind.
void check_pool(const ControllerOptions& options) {
  PagePoolOptions plain = options.pool;
  plain.pin_memory = false;
  const PagePool tried(plain);
}

EncoderOptions encoder_options(const ServerConfig& config) {
  EncoderOptions options;
  options.execution_provider = config.execution_provider;
  options.threads = config.encoder_threads;
  options.mm_process_config = config.mm_process_config;
  options.preprocess_limits.max_pixels = config.max_processed_pixels;
  options.preprocess_limits.max_clip_pixels = config.max_processed_clip_pixels;
  options.preprocess_limits.max_sound_seconds = config.max_processed_seconds;
  return options;
}

BatcherOptions batcher_options(const ServerConfig& config) {
  BatcherOptions options;
  options.max_batch_size = config.max_batch_size;
  options.max_batch_patches = config.max_batch_patches;
  options.max_wait = config.max_batch_wait;
  // Whoever waits for an item holds a thread, so this bound is never met by requests.
  options.max_queue = std::max<std::uint32_t>(
      1024, 2 * static_cast<std::uint32_t>(fill_threads(config) + service_threads(config) +
                                           config.media_threads));
  return options;
}

struct Fill {
  std::size_t index;
  FillTicket ticket;
  std::optional<EncodedItem> reply;
};

struct Join {
  std::size_t index;
  JoinTicket ticket;
};

bool needs_no_waiting(const EncodeItem& item) {
  return item.bytes || item.url.empty() || item.url.starts_with("data:");
}

bool is_expected(const EmbeddingView& view, const ValueExpectation& expected) {
  return view.model_fingerprint() == expected.model_fingerprint &&
         view.tenant() == expected.tenant && view.modality() == expected.modality &&
         view.dtype() == expected.dtype && view.dim() == expected.dim;
}

// What the jobs of one call share; they may outlive the call (TaskGroup).
struct Call {
  std::shared_ptr<ModelSlot> slot;
  std::vector<EncodeItem> items;
  KeyScope scope;
  RequestContext context;
  std::stop_source stop;
  std::vector<PreparedItem> prepared;
  MediaIntake::Tally received;
  std::vector<Fill> fills;
};

// What belongs to the calling thread alone, and goes with it.
struct Outcome {
  std::vector<std::optional<EncodedItem>> replies;
  std::vector<Join> joins;
};

void throw_if_cancelled(const RequestContext& context) {
  if (context.cancel.stop_requested()) {
    throw Error(ErrorCode::cancelled, "the request was cancelled");
  }
}

}  // namespace

bool is_remote(const EncodeItem& item) {
  return !item.bytes && !item.url.empty() && !is_data_url(item.url);
}

struct EncodeService::Impl {
  Impl(const ServerConfig& options, std::shared_ptr<EmbeddingCacheController> shared)
      : config(options),
        controller(std::move(shared)),
        intake(fetch_policy(options),
               {.all = options.max_inflight_bytes, .request = options.max_request_bytes}),
        filler(options),
        fetchers("vt-fetch", fetch_threads, 0),
        fillers("vt-fill", fill_threads(options), 0) {}

  std::shared_ptr<ModelSlot> slot() const {
    std::lock_guard lock(slot_mutex);
    return current;
  }

  void check_shape(const std::vector<EncodeItem>& items) const;
  PreparedItem prepare(const ModelSlot& slot, EncodeItem& item, const KeyScope& scope,
                       const RequestContext& context, MediaIntake::Tally& received) const;
  Digest256 check_media(std::span<const std::byte> bytes, Modality modality,
                        const std::optional<Digest256>& digest) const;
  void prepare_all(const std::shared_ptr<Call>& call);
  void acquire(Call& call, Outcome& outcome);
  void lend_bytes_to_digests(Call& call) const;
  void drop_bytes_of_hits(Call& call, const Outcome& outcome) const;
  void fill_all(const std::shared_ptr<Call>& call, Outcome& outcome);
  void join_all(Call& call, Outcome& outcome);

  const ServerConfig config;
  const std::shared_ptr<EmbeddingCacheController> controller;
  const MediaIntake intake;
  ItemFiller filler;
  const std::shared_ptr<EncoderMeter> meter = std::make_shared<EncoderMeter>();
  std::mutex reload_mutex;
  ModelRetirement retirement;
  mutable std::mutex slot_mutex;
  std::shared_ptr<ModelSlot> current;
  // Last, so that their jobs end before anything they use.
  WorkerPool fetchers;
  WorkerPool fillers;
};

void EncodeService::Impl::check_shape(const std::vector<EncodeItem>& items) const {
  if (items.empty()) throw Error(ErrorCode::invalid_argument, "mm_items is empty");
  if (items.size() > config.max_items) {
    throw Error(ErrorCode::too_large,
                "more than " + std::to_string(config.max_items) + " items in one request");
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& item = items[i];
    const bool has_media = item.bytes || !item.url.empty();
    if (has_media) continue;
    const int at = static_cast<int>(i);
    if (!item.digest) {
      throw Error(ErrorCode::invalid_argument, "an item needs a url or a digest", {}, at);
    }
    if (!config.trust_client_digests) {
      throw Error(ErrorCode::forbidden, "digests without media are not accepted here", {}, at);
    }
  }
}

PreparedItem EncodeService::Impl::prepare(const ModelSlot& slot, EncodeItem& item,
                                          const KeyScope& scope, const RequestContext& context,
                                          MediaIntake::Tally& received) const {
  throw_if_cancelled(context);
  PreparedItem ready;
  const auto settle = [&](Modality modality) {
    slot.require_modality(modality);
    ready.modality = modality;
    ready.params = slot.resolve(modality, item.mm_processor_kwargs);
  };
  if (item.modality) settle(*item.modality);  // what is wrong with it is told before any fetch
  ready.bytes = std::move(item.bytes);
  if (!ready.bytes && !item.url.empty()) {
    ready.bytes = intake.fetch(item.url, context, received);
    item.url = {};
  }
  if (!item.modality) {
    settle(ready.bytes ? slot.modality_for(MediaKind(*ready.bytes)) : slot.default_modality());
  }
  ready.content =
      ready.bytes ? check_media(*ready.bytes, ready.modality, item.digest) : item.digest.value();
  ready.expectation =
      slot.expect(ContentForm::media_bytes, ready.content, ready.modality, ready.params, scope);
  return ready;
}

// The digest of the media. What cannot be decoded is refused here, before any store is asked.
Digest256 EncodeService::Impl::check_media(std::span<const std::byte> bytes, Modality modality,
                                           const std::optional<Digest256>& digest) const {
  if (bytes.empty()) throw Error(ErrorCode::invalid_argument, "the media is empty");
  if (bytes.size() > config.max_item_bytes) {
    throw Error(ErrorCode::too_large, "an item is larger than the limit of " +
                                          std::to_string(config.max_item_bytes) + " bytes");
  }
  const Digest256 content = sha256(bytes);
  if (digest && *digest != content) {
    throw Error(ErrorCode::invalid_argument, "the digest does not match the media");
  }
  const MediaFormat format = sniff(bytes);
  if (!is_decodable(format, modality)) {
    throw Error(ErrorCode::unsupported_format, "cannot decode " + std::string(to_string(format)) +
                                                   " as " + std::string(to_string(modality)));
  }
  return content;
}

void EncodeService::Impl::prepare_all(const std::shared_ptr<Call>& call) {
  const auto count = call->items.size();
  const auto remote = static_cast<std::size_t>(std::ranges::count_if(call->items, is_remote));
  const auto helpers = std::min(remote, fetch_helpers_per_request);
  const auto job = [this, call](std::size_t index) {
    try {
      call->prepared[index] =
          prepare(*call->slot, call->items[index], call->scope, call->context, call->received);
    } catch (const Error& error) {
      throw error.for_item(static_cast<int>(index));
    }
  };
  TaskGroup::run(fetchers, helpers, count, job, call->stop);
}

void EncodeService::Impl::acquire(Call& call, Outcome& outcome) {
  std::vector<ValueExpectation> expected;
  expected.reserve(call.prepared.size());
  for (const auto& item : call.prepared) expected.push_back(item.expectation);
  auto acquired = controller->acquire(expected, call.context);
  outcome.replies.resize(acquired.size());
  for (std::size_t i = 0; i < acquired.size(); ++i) {
    if (auto* hit = std::get_if<Hit>(&acquired[i])) {
      const auto& item = call.prepared[i];
      outcome.replies[i] =
          EncodedItem{item.expectation.key, item.modality, hit->source, std::move(hit->view)};
    } else if (auto* join = std::get_if<JoinTicket>(&acquired[i])) {
      outcome.joins.push_back({i, std::move(*join)});
    } else {
      call.fills.push_back({i, std::get<FillTicket>(std::move(acquired[i])), {}});
    }
  }
}

// A digest alone may stand beside the very media in one request; then it can be filled from there.
void EncodeService::Impl::lend_bytes_to_digests(Call& call) const {
  std::map<EmbeddingKey, std::shared_ptr<const std::vector<std::byte>>> media;
  for (const auto& item : call.prepared) {
    if (item.bytes) media.emplace(item.expectation.key, item.bytes);
  }
  for (auto& item : call.prepared) {
    if (item.bytes) continue;
    const auto found = media.find(item.expectation.key);
    if (found != media.end()) item.bytes = found->second;
  }
}

// They need not be held while the others are encoded.
void EncodeService::Impl::drop_bytes_of_hits(Call& call, const Outcome& outcome) const {
  for (std::size_t i = 0; i < outcome.replies.size(); ++i) {
    if (outcome.replies[i]) call.prepared[i].bytes.reset();
  }
}

void EncodeService::Impl::fill_all(const std::shared_ptr<Call>& call, Outcome& outcome) {
  for (const auto& fill : call->fills) {
    if (call->prepared[fill.index].bytes) continue;
    throw Error(ErrorCode::not_found, "nothing is cached for this digest", {},
                static_cast<int>(fill.index));
  }
  // First what is ours to encode; only then what others are encoding is waited for.
  for (const auto patience : {ItemFiller::Patience::none, ItemFiller::Patience::wait}) {
    const auto job = [this, call, patience](std::size_t nth) {
      auto& fill = call->fills[nth];
      if (fill.reply) return;
      try {
        fill.reply = filler.fill(*call->slot, call->prepared[fill.index], call->scope, fill.ticket,
                                 call->context, patience);
      } catch (const Error& error) {
        throw error.for_item(static_cast<int>(fill.index));
      }
    };
    const auto count = call->fills.size();
    if (std::ranges::all_of(call->fills, [](const Fill& fill) { return fill.reply.has_value(); })) {
      break;
    }
    TaskGroup::run(fillers, count, count, job, call->stop);
  }
  for (auto& fill : call->fills) outcome.replies[fill.index] = std::move(fill.reply);
}

void EncodeService::Impl::join_all(Call& call, Outcome& outcome) {
  for (auto& [index, ticket] : outcome.joins) {
    const auto& item = call.prepared[index];
    try {
      auto end = ticket.wait(call.context);
      if (auto* view = std::get_if<EmbeddingView>(&end)) {
        outcome.replies[index] =
            EncodedItem{item.expectation.key, item.modality, Source::joined, std::move(*view)};
        continue;
      }
      if (!item.bytes) throw Error(ErrorCode::not_found, "nothing is cached for this digest");
      outcome.replies[index] = filler.fill(*call.slot, item, call.scope, std::get<FillTicket>(end),
                                           call.context, ItemFiller::Patience::wait);
    } catch (const Error& error) {
      throw error.for_item(static_cast<int>(index));
    }
  }
}

std::unique_ptr<EncodeService> EncodeService::from_config(const ServerConfig& config) {
  check_config(config);
  const auto urls = resolve_store_urls(config);
  check_pool(controller_options(config));
  std::shared_ptr<Encoder> encoder = make_encoder(config.encoder, encoder_options(config));
  const auto factory = EmbeddingStoreFactory::with_builtins();
  std::vector<std::shared_ptr<EmbeddingStore>> stores;
  for (const auto& url : urls) {
    stores.push_back(factory.create_backend(url));
    logger()->info("store {}", redact_url(url));
  }
  auto controller =
      std::make_shared<EmbeddingCacheController>(controller_options(config), std::move(stores));
  for (const auto& warning : controller->pool().warnings()) logger()->warn("pool: {}", warning);
  for (const auto& note : controller->pool().notes()) logger()->info("pool: {}", note);
  return std::make_unique<EncodeService>(config, std::move(controller), std::move(encoder));
}

EncodeService::EncodeService(const ServerConfig& config,
                             std::shared_ptr<EmbeddingCacheController> controller,
                             std::shared_ptr<Encoder> encoder)
    : impl_(std::make_unique<Impl>(config, std::move(controller))) {
  swap_encoder(std::move(encoder));
}

EncodeService::~EncodeService() = default;

std::vector<EncodedItem> EncodeService::encode(EncodeRequest request) {
  auto call = std::make_shared<Call>();
  call->slot = impl_->slot();
  call->items = std::move(request.items);
  call->scope = {impl_->config.epoch, std::move(request.tenant)};
  call->context = {request.deadline, call->stop.get_token(), std::move(request.req_id)};
  const std::stop_callback link(request.cancel, [call] { call->stop.request_stop(); });

  impl_->check_shape(call->items);
  call->prepared.resize(call->items.size());
  impl_->prepare_all(call);
  Outcome outcome;
  impl_->acquire(*call, outcome);
  impl_->lend_bytes_to_digests(*call);
  impl_->drop_bytes_of_hits(*call, outcome);
  // Fills first, joins last: a key that stands twice in the request joins its own first occurrence.
  impl_->fill_all(call, outcome);
  impl_->join_all(*call, outcome);

  std::vector<EncodedItem> replies;
  replies.reserve(outcome.replies.size());
  for (auto& reply : outcome.replies) replies.push_back(std::move(reply.value()));
  return replies;
}

std::optional<EncodedItem> EncodeService::peek_hit(EncodeRequest request) {
  if (request.items.size() != 1 || !needs_no_waiting(request.items[0])) return std::nullopt;
  impl_->check_shape(request.items);
  try {
    const auto slot = impl_->slot();
    MediaIntake::Tally received;
    const auto item =
        impl_->prepare(*slot, request.items[0], {impl_->config.epoch, std::move(request.tenant)},
                       {request.deadline, request.cancel, {}}, received);
    auto view = impl_->controller->peek(item.expectation.key);
    if (!view || !is_expected(view, item.expectation)) return std::nullopt;
    return EncodedItem{item.expectation.key, item.modality, Source::local, std::move(view)};
  } catch (const Error& error) {
    throw error.for_item(0);
  }
}

void EncodeService::encode_probe(const RequestContext& context) {
  const auto slot = impl_->slot();
  impl_->filler.probe(*slot, context);
}

EncoderInfo EncodeService::reload(const std::string& spec) {
  // Loading may take minutes; whoever asks meanwhile would hold up other calls of operators.
  const std::unique_lock lock(impl_->reload_mutex, std::try_to_lock);
  if (!lock) throw Error(ErrorCode::unavailable, "another reload is under way");
  // One that hangs never ends, and each is a whole model in memory.
  if (impl_->retirement.living() >= max_living_models)
    throw Error(ErrorCode::unavailable, "models that were replaced have not ended yet");
  std::shared_ptr<Encoder> encoder = make_encoder(spec, encoder_options(impl_->config));
  EncoderInfo info = encoder->info();
  swap_encoder(std::move(encoder));
  return info;
}

void EncodeService::swap_encoder(std::shared_ptr<Encoder> encoder) {
  auto fresh = impl_->retirement.keep(std::make_unique<ModelSlot>(std::move(encoder), impl_->meter,
                                                                  batcher_options(impl_->config)));
  std::lock_guard lock(impl_->slot_mutex);
  impl_->current.swap(fresh);
}

EncoderInfo EncodeService::encoder_info() const { return impl_->slot()->info(); }

EncoderTotals EncodeService::encoder_totals() const {
  const auto& meter = *impl_->meter;
  const BatcherStats batcher = impl_->slot()->batcher().stats();
  EncoderTotals totals;
  totals.items = meter.items;
  totals.batches = meter.batches;
  totals.failures = meter.failures;
  totals.busy_us = meter.busy_us;
  totals.queued = batcher.queued;
  totals.running_since_us = batcher.running_since_us;
  return totals;
}

std::uint64_t EncodeService::media_bytes() const { return impl_->intake.held(); }

EmbeddingCacheController& EncodeService::controller() { return *impl_->controller; }
const EmbeddingCacheController& EncodeService::controller() const { return *impl_->controller; }

}  // namespace vitrove
