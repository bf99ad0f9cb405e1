// FaultyStore: a store that lies, fails, hangs and throws on request (field case B56).
//
// It wraps a healthy store and applies rules to single keys of its batches:
//
//   FaultyStore store(make_memory_store({}));
//   store.add({.op = StoreOp::get, .fault = Fault::short_read});   // every get, for ever
//   store.add({.op = StoreOp::put, .key = k, .fault = Fault::error, .times = 1});
//   store.add({.op = StoreOp::get, .fault = Fault::hold_before});  // stands at gate()
//
// The first rule that matches a key decides. All methods are thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "contract/gate.h"
#include "vitrove/embedding_store.h"

namespace vitrove::testing {

enum class StoreOp : std::uint8_t { get, put, exist, remove, list, claim, renew, release };
inline constexpr std::size_t store_op_count = 8;

enum class Fault : std::uint8_t {
  error,           // the key is not touched; `status` and `error_number` are answered
  odd_status,      // a status that no enumerator has
  no_effect,       // `ok`, but nothing was written (get) or stored (put) or is there (exist)
  zero_size,       // `ok` with size 0, nothing written or stored
  short_read,      // get: `ok`, though the last `bytes` bytes were not written
  wrong_bytes,     // get: `ok`, but the byte at offset `bytes` has a flipped bit
  wrong_size,      // get, exist: `ok`, with `bytes` as the size
  vanish,          // exist: `ok`, and the value is removed right after (field case B43)
  missing_result,  // the call answers one result too few
  extra_result,    // the call answers one result too many
  throws,          // the call throws
  hold_before,     // the call stands at gate() before it does anything
  hold_after,      // the call does its work and stands at gate() before it answers
};

struct FaultRule {
  StoreOp op = StoreOp::get;
  std::optional<EmbeddingKey> key;  // nothing: every key
  Fault fault = Fault::error;
  StoreStatus status = StoreStatus::io_error;
  int error_number = EIO;
  std::uint64_t bytes = 1;
  std::size_t skip = 0;  // matches to let pass first
  std::size_t times = std::numeric_limits<std::size_t>::max();
};

class FaultyStore final : public EmbeddingStore {
 public:
  explicit FaultyStore(std::shared_ptr<EmbeddingStore> inner) : inner_(std::move(inner)) {}
  ~FaultyStore() override { gate_.open(); }

  void add(const FaultRule& rule) {
    std::lock_guard lock(mutex_);
    rules_.push_back(rule);
  }
  // Healthy again; calls that stand at the gate go on.
  void heal() {
    {
      std::lock_guard lock(mutex_);
      rules_.clear();
    }
    gate_.open();
  }
  // Closed from the start: hold_before and hold_after wait until it is opened.
  Gate& gate() { return gate_; }
  EmbeddingStore& inner() { return *inner_; }

  std::size_t calls(StoreOp op) const { return counts_[index(op)].calls; }
  std::size_t keys(StoreOp op) const { return counts_[index(op)].keys; }

  std::string_view name() const override { return "faulty"; }
  StoreCapabilities capabilities() const override { return inner_->capabilities(); }
  StoreHealth health() const override { return inner_->health(); }
  std::string get_key(const EmbeddingKey& key) const override { return inner_->get_key(key); }
  void register_buffer(MutableBuffer arena) override { inner_->register_buffer(arena); }
  void unregister_buffer(MutableBuffer arena) override { inner_->unregister_buffer(arena); }
  void register_shared_buffer(MutableBuffer arena, int memfd) override {
    inner_->register_shared_buffer(arena, memfd);
  }

  std::vector<StoreResult> batch_get_into_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const MutableBufferList> buffers,
                                                        const StoreContext& context) override {
    return run(StoreOp::get, keys, [&](std::size_t i, const FaultRule* rule) {
      Renumbered observer(context.observer, i);
      StoreContext one = context;
      one.observer = context.observer == nullptr ? nullptr : &observer;
      if (!rule) {
        return first(
            inner_->batch_get_into_multi_buffers(keys.subspan(i, 1), buffers.subspan(i, 1), one));
      }
      return faulty_get(keys[i], buffers[i], *rule, one);
    });
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(std::span<const EmbeddingKey> keys,
                                                        std::span<const ConstBufferList> buffers,
                                                        PutMode mode,
                                                        const StoreContext& context) override {
    return run(StoreOp::put, keys, [&](std::size_t i, const FaultRule* rule) {
      if (rule) return lie(*rule, total(buffers[i]));
      return first(inner_->batch_put_from_multi_buffers(keys.subspan(i, 1), buffers.subspan(i, 1),
                                                        mode, context));
    });
  }

  std::vector<StoreResult> batch_is_exist(std::span<const EmbeddingKey> keys,
                                          const StoreContext& context) override {
    return run(StoreOp::exist, keys, [&](std::size_t i, const FaultRule* rule) {
      if (rule && rule->fault != Fault::vanish) return lie(*rule, rule->bytes);
      const StoreResult result = first(inner_->batch_is_exist(keys.subspan(i, 1), context));
      if (rule) inner_->batch_remove(keys.subspan(i, 1), context);
      return result;
    });
  }

  std::vector<StoreResult> batch_remove(std::span<const EmbeddingKey> keys,
                                        const StoreContext& context) override {
    return run(StoreOp::remove, keys, [&](std::size_t i, const FaultRule* rule) {
      if (rule) return lie(*rule, 0);
      return first(inner_->batch_remove(keys.subspan(i, 1), context));
    });
  }

  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override {
    const EmbeddingKey nobody;
    return first(run(StoreOp::list, {&nobody, 1}, [&](std::size_t, const FaultRule* rule) {
      return rule ? lie(*rule, 0) : inner_->list(options, visit, context);
    }));
  }

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override {
    return first(run(StoreOp::claim, {&key, 1}, [&](std::size_t, const FaultRule* rule) {
      return rule ? lie(*rule, 0) : inner_->claim(key, ttl, token, context);
    }));
  }
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    return first(run(StoreOp::renew, {&key, 1}, [&](std::size_t, const FaultRule* rule) {
      return rule ? lie(*rule, 0) : inner_->renew(key, token, ttl, context);
    }));
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome outcome,
                      const StoreContext& context) override {
    return first(run(StoreOp::release, {&key, 1}, [&](std::size_t, const FaultRule* rule) {
      return rule ? lie(*rule, 0) : inner_->release(key, token, outcome, context);
    }));
  }

 private:
  struct Counts {
    std::atomic<std::size_t> calls{0};
    std::atomic<std::size_t> keys{0};
  };

  // Gives a piece of a call for one key its place in the whole batch.
  class Renumbered final : public PieceObserver {
   public:
    Renumbered(PieceObserver* outer, std::size_t index) : outer_(outer), index_(index) {}
    void on_piece(std::size_t, std::uint64_t offset, ConstBuffer piece) noexcept override {
      outer_->on_piece(index_, offset, piece);
    }

   private:
    PieceObserver* outer_;
    std::size_t index_;
  };

  static std::size_t index(StoreOp op) { return static_cast<std::size_t>(op); }
  static StoreResult first(const std::vector<StoreResult>& results) {
    return results.empty() ? StoreResult{StoreStatus::io_error} : results.front();
  }
  template <typename List>
  static std::uint64_t total(const List& list) {
    std::uint64_t bytes = 0;
    for (const auto& buffer : list) bytes += buffer.size();
    return bytes;
  }

  std::optional<FaultRule> match(StoreOp op, const EmbeddingKey& key) {
    std::lock_guard lock(mutex_);
    for (FaultRule& rule : rules_) {
      if (rule.op != op || (rule.key && *rule.key != key) || rule.times == 0) continue;
      if (rule.skip > 0) {
        --rule.skip;
        continue;
      }
      --rule.times;
      return rule;
    }
    return std::nullopt;
  }

  template <typename OneKey>
  std::vector<StoreResult> run(StoreOp op, std::span<const EmbeddingKey> keys, OneKey one_key) {
    ++counts_[index(op)].calls;
    counts_[index(op)].keys += keys.size();
    std::vector<std::optional<FaultRule>> rules;
    for (const EmbeddingKey& key : keys) rules.push_back(match(op, key));
    const auto any = [&](Fault fault) {
      for (const auto& rule : rules) {
        if (rule && rule->fault == fault) return true;
      }
      return false;
    };

    if (any(Fault::hold_before)) gate_.pass();
    if (any(Fault::throws)) throw std::runtime_error("a store that throws");
    std::vector<StoreResult> results;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      results.push_back(one_key(i, rules[i] && per_key(rules[i]->fault) ? &*rules[i] : nullptr));
    }
    if (any(Fault::missing_result)) results.pop_back();
    if (any(Fault::extra_result)) results.push_back({});
    if (any(Fault::hold_after)) gate_.pass();
    return results;
  }

  static bool per_key(Fault fault) { return fault < Fault::missing_result; }

  // The answer of a rule under which nothing is done.
  static StoreResult lie(const FaultRule& rule, std::uint64_t size) {
    switch (rule.fault) {
      case Fault::error:
        return {rule.status, 0, rule.error_number};
      case Fault::odd_status:
        return {static_cast<StoreStatus>(0xEE), size};
      case Fault::zero_size:
        return {StoreStatus::ok, 0};
      default:
        return {StoreStatus::ok, size};
    }
  }

  StoreResult faulty_get(const EmbeddingKey& key, MutableBufferList buffers, const FaultRule& rule,
                         const StoreContext& context) {
    const std::uint64_t size = total(buffers);
    if (rule.fault == Fault::wrong_size) {
      StoreResult result =
          first(inner_->batch_get_into_multi_buffers({&key, 1}, {&buffers, 1}, context));
      result.size = rule.bytes;
      return result;
    }
    if (rule.fault != Fault::short_read && rule.fault != Fault::wrong_bytes) return lie(rule, size);

    std::vector<std::byte> value(size);
    StoreContext unobserved = context;
    unobserved.observer = nullptr;
    const MutableBuffer whole(value);
    const StoreResult result = first(inner_->batch_get({&key, 1}, {&whole, 1}, unobserved));
    if (!result.ok()) return result;
    std::uint64_t arrived = size;
    if (rule.fault == Fault::short_read) arrived -= std::min(size, rule.bytes);
    if (rule.fault == Fault::wrong_bytes) value[rule.bytes % size] ^= std::byte{0x10};
    deliver(std::span(value).first(arrived), buffers, context);
    return result;
  }

  // Copies what "arrived", and reports it: a liar reports what it wrote, and no more.
  void deliver(ConstBuffer value, MutableBufferList buffers, const StoreContext& context) {
    const bool report = context.observer != nullptr && inner_->capabilities().reports_pieces;
    std::uint64_t offset = 0;
    for (const MutableBuffer& buffer : buffers) {
      const std::size_t count = std::min<std::uint64_t>(buffer.size(), value.size() - offset);
      if (count == 0) continue;
      std::copy_n(value.begin() + static_cast<std::ptrdiff_t>(offset), count, buffer.begin());
      if (report) context.observer->on_piece(0, offset, buffer.first(count));
      offset += count;
    }
  }

  std::shared_ptr<EmbeddingStore> inner_;
  Gate gate_{false};
  std::mutex mutex_;
  std::vector<FaultRule> rules_;
  std::array<Counts, store_op_count> counts_;
};

}  // namespace vitrove::testing
