#include "vitrove/mooncake_store.h"

#include <algorithm>
#include <utility>

#include "stores/batch.h"
#include "stores/builtin_backends.h"
#include "stores/mooncake/batch_plan.h"
#include "stores/mooncake/helper_command.h"
#include "stores/mooncake/helper_process.h"
#include "stores/mooncake/options.h"
#include "stores/mooncake/results.h"
#include "stores/mooncake/staging.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

constexpr std::uint32_t staging_region = 0;
constexpr std::uint32_t arena_region = 1;

template <typename Buffer>
using Lists = std::span<const std::span<const Buffer>>;

StoreStatus status_of(CallEnd end) {
  switch (end) {
    case CallEnd::timed_out:
      return StoreStatus::timeout;
    case CallEnd::cancelled:
      return StoreStatus::cancelled;
    default:
      return StoreStatus::unavailable;
  }
}

// How long a put waits for another client's put of the same key.
constexpr std::chrono::seconds others_put_time{2};

std::chrono::milliseconds time_left(const StoreContext& context) {
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  if (context.deadline <= now) return milliseconds(0);
  return std::chrono::ceil<milliseconds>(context.deadline - now);
}

void rest(std::chrono::milliseconds time, const std::stop_token& cancel) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, cancel, time, [] { return false; });
}

HelperOptions helper_options(const MooncakeStoreOptions& options) {
  HelperOptions helper;
  helper.command = [options] { return helper_command(options); };
  helper.setup = helper_settings(options);
  helper.master = options.master;
  helper.connect_timeout = options.connect_timeout;
  helper.start_time = options.start_timeout;
  helper.hang_time = options.hang_timeout;
  return helper;
}

class MooncakeStore final : public EmbeddingStore {
 public:
  explicit MooncakeStore(const MooncakeStoreOptions& options)
      : options_(options), staging_(options.staging_bytes), helper_(helper_options(options)) {
    helper_.add_region(staging_region, staging_.memfd(), staging_.size(),
                       HelperProcess::Need::required);
  }

  bool wait_ready(std::chrono::milliseconds time) {
    return helper_.wait_ready(std::chrono::steady_clock::now() + time);
  }

  std::string_view name() const override { return "mooncake"; }
  std::string get_key(const EmbeddingKey& key) const override {
    return options_.prefix + key.text();
  }
  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.can_remove = true;
    all.max_value_bytes = staging_.size();
    return all;
  }
  StoreHealth health() const override;

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override;
  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override;
  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override;
  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override;

  void register_shared_buffer(MutableBuffer arena, int memfd) override;
  void unregister_buffer(MutableBuffer arena) override;

 private:
  // One transfer of a batch: what the caller gave, and where the answers go.
  template <typename Buffer>
  struct Transfer {
    std::span<const EmbeddingKey> keys;
    Lists<Buffer> buffers;
    const StoreContext& context;
    std::vector<StoreResult>& results;
  };

  template <typename Buffer>
  std::vector<StoreResult> transfer(std::span<const EmbeddingKey> keys, Lists<Buffer> buffers,
                                    const StoreContext& context);
  template <typename Buffer>
  void move_round(const Transfer<Buffer>& all, std::span<const std::size_t> round);
  template <typename Buffer>
  void move_direct(const Transfer<Buffer>& all, std::span<const std::size_t> indices,
                   std::vector<wire::Item> items);
  template <typename Buffer>
  void move_staged(const Transfer<Buffer>& all, std::span<const std::size_t> indices);
  template <typename Buffer>
  void settle(const Transfer<Buffer>& all, std::span<const std::size_t> indices,
              const CallResult& call);

  void confirm(const Transfer<ConstBuffer>& all, std::span<const std::size_t> indices);

  template <typename Judge>
  std::vector<StoreResult> ask_about(wire::Type type, std::span<const EmbeddingKey> keys,
                                     const StoreContext& context, Judge judge);
  ArenaView arena() const;

  const MooncakeStoreOptions options_;
  mutable std::mutex mutex_;  // of the arena
  MutableBuffer arena_;
  StagingMemory staging_;
  HelperProcess helper_;  // last: it ends before the memory that it was lent
};

StoreHealth MooncakeStore::health() const {
  const auto report = helper_.report();
  StoreHealth health;
  health.state = report.state;
  health.detail = report.detail;
  std::string who = report.provider;
  if (who.empty()) {
    who = options_.library.empty() ? "the Python at " + options_.python
                                   : "the library " + options_.library;
  }
  if (report.pid >= 0) who += ", helper process " + std::to_string(report.pid);
  health.detail += " (through " + who + ")";
  return health;
}

ArenaView MooncakeStore::arena() const {
  if (!helper_.takes_many_runs() || !helper_.has_region(arena_region)) return {};
  std::lock_guard lock(mutex_);
  return {arena_region, arena_.data(), arena_.size()};
}

void MooncakeStore::register_shared_buffer(MutableBuffer arena, int memfd) {
  if (memfd < 0 || arena.empty()) return;  // its values are staged
  {
    std::lock_guard lock(mutex_);
    // Mooncake takes no overlapping registrations, and a process has one pool.
    if (!arena_.empty()) return;
    arena_ = arena;
  }
  helper_.add_region(arena_region, memfd, arena.size());
}

void MooncakeStore::unregister_buffer(MutableBuffer arena) {
  {
    std::lock_guard lock(mutex_);
    if (arena_.data() != arena.data()) return;
    arena_ = {};
  }
  helper_.remove_region(arena_region);
}

// --- values ---

std::vector<StoreResult> MooncakeStore::batch_get_into_multi_buffers(
    std::span<const EmbeddingKey> keys, std::span<const MutableBufferList> buffers,
    const StoreContext& context) {
  return transfer<MutableBuffer>(keys, buffers, context);
}

std::vector<StoreResult> MooncakeStore::batch_put_from_multi_buffers(
    std::span<const EmbeddingKey> keys, std::span<const ConstBufferList> buffers, PutMode mode,
    const StoreContext& context) {
  if (mode == PutMode::if_absent) return transfer<ConstBuffer>(keys, buffers, context);
  // Mooncake calls a put to a key that is there a success and keeps the old bytes.
  if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
  auto results = same_for_all(keys.size(), StoreStatus::unsupported);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const StoreStatus size = check_value_size(total_bytes(buffers[i]), staging_.size());
    if (size != StoreStatus::ok) results[i].status = size;
  }
  return results;
}

template <typename Buffer>
std::vector<StoreResult> MooncakeStore::transfer(std::span<const EmbeddingKey> keys,
                                                 Lists<Buffer> buffers,
                                                 const StoreContext& context) {
  if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
  auto results = same_for_all(keys.size(), StoreStatus::unavailable);
  const Transfer<Buffer> all{keys, buffers, context, results};
  for (const auto& round : rounds_of(keys)) {
    std::vector<std::size_t> good;
    for (const std::size_t i : round) {
      results[i].status = check_value_size(total_bytes(buffers[i]), staging_.size());
      if (results[i].ok()) good.push_back(i);
    }
    move_round(all, good);
    if constexpr (std::is_same_v<Buffer, ConstBuffer>) {
      confirm(all, good);
    } else {
      // A lease that ran out during the transfer is worth one more attempt.
      std::vector<std::size_t> again;
      for (const std::size_t i : good) {
        if (results[i].error_number == ESTALE) again.push_back(i);
      }
      move_round(all, again);
    }
  }
  return results;
}

template <typename Buffer>
void MooncakeStore::move_round(const Transfer<Buffer>& all, std::span<const std::size_t> round) {
  if (round.empty()) return;
  if (const auto reason = stop_reason(all.context)) {
    for (const std::size_t i : round) all.results[i] = {*reason};
    return;
  }
  const ArenaView view = arena();
  std::vector<std::size_t> staged;
  std::vector<std::size_t> direct;
  std::vector<wire::Item> items;
  std::size_t runs = 0;
  for (const std::size_t i : round) {
    auto in_arena = runs_in_arena(view, all.buffers[i]);
    if (!in_arena) {
      staged.push_back(i);
      continue;
    }
    if (direct.size() == max_keys_in_question || runs + in_arena->size() > max_runs_in_question) {
      move_direct(all, std::exchange(direct, {}), std::exchange(items, {}));
      runs = 0;
    }
    runs += in_arena->size();
    direct.push_back(i);
    items.push_back({get_key(all.keys[i]), *std::move(in_arena)});
  }
  if (!direct.empty()) move_direct(all, direct, std::move(items));
  move_staged(all, staged);
}

// The helper works on the caller's own memory: he stays until it has let go of it.
template <typename Buffer>
void MooncakeStore::move_direct(const Transfer<Buffer>& all, std::span<const std::size_t> indices,
                                std::vector<wire::Item> items) {
  constexpr bool gets = std::is_same_v<Buffer, MutableBuffer>;
  HelperProcess::Question question;
  question.type = gets ? wire::Type::get : wire::Type::put;
  question.items = std::move(items);
  settle(all, indices, helper_.ask(std::move(question), all.context));
}

template <typename Buffer>
void MooncakeStore::move_staged(const Transfer<Buffer>& all, std::span<const std::size_t> indices) {
  constexpr bool gets = std::is_same_v<Buffer, MutableBuffer>;
  while (!indices.empty()) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    while (count < indices.size() && count < max_keys_in_question &&
           (count == 0 || bytes < staged_bytes_in_question)) {
      bytes += total_bytes(all.buffers[indices[count++]]);
    }
    // The last one may have made it too much for the whole of it.
    if (bytes > staging_.size() && count > 1) bytes -= total_bytes(all.buffers[indices[--count]]);
    const auto some = indices.first(count);
    indices = indices.subspan(count);

    auto block = staging_.take(bytes, all.context.deadline, all.context.cancel);
    if (!block) {
      const StoreStatus reason = stop_reason(all.context).value_or(StoreStatus::timeout);
      for (const std::size_t i : some) all.results[i] = {reason};
      continue;
    }
    HelperProcess::Question question;
    question.type = gets ? wire::Type::get : wire::Type::put;
    question.may_leave = true;
    std::uint64_t offset = 0;
    for (const std::size_t i : some) {
      const std::uint64_t size = total_bytes(all.buffers[i]);
      if constexpr (!gets) gather(all.buffers[i], block->bytes().data() + offset);
      question.items.push_back(
          {get_key(all.keys[i]), {{staging_region, block->offset() + offset, size}}});
      offset += size;
    }
    question.block = *std::move(block);
    const CallResult call = helper_.ask(std::move(question), all.context);
    settle(all, some, call);
    if constexpr (gets) {
      offset = 0;
      for (const std::size_t i : some) {
        const std::uint64_t size = total_bytes(all.buffers[i]);
        if (all.results[i].ok()) {
          scatter(call.block.bytes().subspan(offset, size), all.buffers[i], i,
                  all.context.observer);
        }
        offset += size;
      }
    }
  }
}

template <typename Buffer>
void MooncakeStore::settle(const Transfer<Buffer>& all, std::span<const std::size_t> indices,
                           const CallResult& call) {
  constexpr bool gets = std::is_same_v<Buffer, MutableBuffer>;
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const std::size_t i = indices[n];
    const std::uint64_t bytes = total_bytes(all.buffers[i]);
    if (call.end != CallEnd::answered) {
      all.results[i] = {status_of(call.end)};
    } else if (gets) {
      all.results[i] = get_result(call.answers[n], bytes);
    } else {
      all.results[i] = put_result(call.answers[n], bytes);
    }
  }
}

// Mooncake calls a put a success too when another client is at that key and has not finished, or
// never will. The answer is ok only when the value can be read.
void MooncakeStore::confirm(const Transfer<ConstBuffer>& all,
                            std::span<const std::size_t> indices) {
  std::vector<std::size_t> waiting;
  for (const std::size_t i : indices) {
    if (all.results[i].ok()) waiting.push_back(i);
  }
  const auto give_up = std::chrono::steady_clock::now() + others_put_time;
  for (auto pause = std::chrono::milliseconds(1); !waiting.empty(); pause = pause * 2) {
    std::vector<EmbeddingKey> keys;
    keys.reserve(waiting.size());
    for (const std::size_t i : waiting) keys.push_back(all.keys[i]);
    const auto found = batch_is_exist(keys, all.context);
    std::vector<std::size_t> still;
    for (std::size_t n = 0; n < waiting.size(); ++n) {
      if (found[n].status == StoreStatus::absent) {
        still.push_back(waiting[n]);
      } else if (!found[n].ok()) {
        all.results[waiting[n]] = found[n];
      }
    }
    waiting = std::move(still);
    if (!waiting.empty() && std::chrono::steady_clock::now() + pause > give_up) break;
    if (!waiting.empty()) rest(std::min(pause, time_left(all.context)), all.context.cancel);
  }
  for (const std::size_t i : waiting) all.results[i] = {StoreStatus::io_error};
}

// --- keys ---

template <typename Judge>
std::vector<StoreResult> MooncakeStore::ask_about(wire::Type type,
                                                  std::span<const EmbeddingKey> keys,
                                                  const StoreContext& context, Judge judge) {
  auto results = same_for_all(keys.size(), StoreStatus::unavailable);
  for (const auto& round : rounds_of(keys)) {
    for (std::size_t at = 0; at < round.size(); at += max_keys_in_question) {
      const auto some =
          std::span(round).subspan(at, std::min(max_keys_in_question, round.size() - at));
      if (const auto reason = stop_reason(context)) {
        for (const std::size_t i : some) results[i] = {*reason};
        continue;
      }
      HelperProcess::Question question;
      question.type = type;
      question.may_leave = true;
      for (const std::size_t i : some) question.items.push_back({get_key(keys[i]), {}});
      const CallResult call = helper_.ask(std::move(question), context);
      for (std::size_t n = 0; n < some.size(); ++n) {
        const bool answered = call.end == CallEnd::answered;
        results[some[n]] = answered ? judge(call.answers[n]) : StoreResult{status_of(call.end)};
      }
    }
  }
  return results;
}

std::vector<StoreResult> MooncakeStore::batch_is_exist(std::span<const EmbeddingKey> keys,
                                                       const StoreContext& context) {
  return ask_about(wire::Type::exist, keys, context, exist_result);
}

std::vector<StoreResult> MooncakeStore::batch_remove(std::span<const EmbeddingKey> keys,
                                                     const StoreContext& context) {
  return ask_about(wire::Type::remove, keys, context, remove_result);
}

}  // namespace
}  // namespace vitrove::mooncake

namespace vitrove {

std::unique_ptr<EmbeddingStore> make_mooncake_store(const MooncakeStoreOptions& options) {
  mooncake::check(options);
  auto store = std::make_unique<mooncake::MooncakeStore>(options);
  if (options.strict && !store->wait_ready(options.start_timeout)) {
    throw Error(ErrorCode::invalid_argument, "mooncake store: not ready in time, and strict is set",
                store->health().detail);
  }
  return store;
}

std::unique_ptr<EmbeddingStore> create_mooncake_store(const StoreUrl& url, StoreOptions& options) {
  return make_mooncake_store(mooncake::read_options(url, options));
}

}  // namespace vitrove
