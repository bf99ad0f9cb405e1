#include "vitrove/redis_store.h"

#include <algorithm>

#include "stores/batch.h"
#include "stores/builtin_backends.h"
#include "stores/redis/claims.h"
#include "stores/redis/client.h"
#include "stores/redis/errors.h"
#include "stores/redis/get_plan.h"
#include "stores/redis/hash_slot.h"
#include "stores/redis/lister.h"
#include "stores/redis/parts_refusal.h"
#include "stores/redis/redis_options.h"
#include "stores/redis/standing_trouble.h"
#include "vitrove/error.h"

namespace vitrove {
namespace redis {
namespace {

StoreResult remove_result(const Command& command) {
  if (!command.answered) return command.fault.result();
  const Reply& reply = command.reply;
  if (reply.type != ReplyType::integer || reply.number < 0) return result_of_error(reply);
  return {reply.number > 0 ? StoreStatus::ok : StoreStatus::absent};
}

class RedisStore final : public EmbeddingStore {
 public:
  explicit RedisStore(std::shared_ptr<const Settings> settings)
      : settings_(std::move(settings)), client_(settings_) {}

  std::string_view name() const override { return "redis"; }

  StoreCapabilities capabilities() const override {
    StoreCapabilities all;
    all.can_remove = all.can_list = all.can_claim = all.can_replace = all.reports_pieces = true;
    all.max_value_bytes = client_.fleet().max_value_bytes();
    return all;
  }

  StoreHealth health() const override {
    StoreHealth health = client_.fleet().health();
    const std::string refusal = refused_puts_.detail();
    if (health.state == StoreState::ready && !refusal.empty()) {
      health.state = StoreState::degraded;
      health.detail = refusal;
    }
    // Nothing is wrong then: it only costs more.
    if (health.detail.empty()) health.detail = parts_refusal_.detail();
    return health;
  }

  bool wait_for_first_attempt() { return client_.fleet().wait_for_first_attempt(); }

  std::string get_key(const EmbeddingKey& key) const override { return prefix() + key.text(); }

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
  StoreResult list(const ListOptions& options, const std::function<bool(const ListedValue&)>& visit,
                   const StoreContext& context) override {
    return Lister(client_, prefix(), options, visit, context).run();
  }

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token,
                    const StoreContext& context) override;
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token, std::chrono::milliseconds ttl,
                    const StoreContext& context) override {
    const std::string name = claim_name(key);
    return ask_holder(name, encode_renew(name, token.value, ttl), context);
  }
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token, ClaimOutcome,
                      const StoreContext& context) override {
    const std::string name = claim_name(key);
    return ask_holder(name, encode_release(name, token.value), context);
  }

 private:
  const std::string& prefix() const { return settings_->options.prefix; }
  std::string claim_name(const EmbeddingKey& key) const { return prefix() + "claim:" + key.text(); }

  void get_whole(const GetPlan& refused, const Fault& why, std::span<StoreResult> results,
                 const StoreContext& context);
  Command put_command(const EmbeddingKey& key, ConstBufferList buffers, std::uint64_t size,
                      PutMode mode) const;
  StoreResult put_result(const Command& command, std::uint64_t size, PutMode mode);
  StoreResult ask_holder(const std::string& name, std::string command, const StoreContext& context);
  std::vector<StoreResult> ask_each(std::span<const EmbeddingKey> keys, std::string_view verb,
                                    Use use, StoreResult (*result_of)(const Command&),
                                    const StoreContext& context);

  const std::shared_ptr<const Settings> settings_;
  Client client_;
  StandingTrouble refused_puts_{std::chrono::minutes(1), "puts are accepted again"};
  PartsRefusal parts_refusal_;
};

std::vector<StoreResult> RedisStore::batch_get_into_multi_buffers(
    std::span<const EmbeddingKey> keys, std::span<const MutableBufferList> buffers,
    const StoreContext& context) {
  if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
  if (const auto reason = stop_reason(context)) return same_for_all(keys.size(), *reason);
  std::vector<StoreResult> results(keys.size(), {StoreStatus::invalid});
  GetPlan plan(parts_refusal_.holds() ? GetPlan::Large::whole : GetPlan::Large::in_parts);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (total_bytes(buffers[i]) > 0) plan.add(i, get_key(keys[i]), buffers[i]);
  }
  const auto asked = Clock::now();
  client_.run(plan.commands(), plan.has_large() ? Use::read_large : Use::read, context);
  plan.settle(results);
  if (const Fault why = plan.why_parts_are_refused()) {
    get_whole(plan, why, results, context);
  } else if (plan.has_read_parts()) {
    parts_refusal_.came(asked);
  }
  return results;
}

void RedisStore::get_whole(const GetPlan& refused, const Fault& why, std::span<StoreResult> results,
                           const StoreContext& context) {
  GetPlan whole = refused.refused_as_whole();
  client_.run(whole.commands(), Use::read_large, context);
  whole.settle(results);
  // Who may not GET either lacks more than parts, and they have their chance when he gets it.
  if (!whole.is_refused()) parts_refusal_.refused(why);
}

Command RedisStore::put_command(const EmbeddingKey& key, ConstBufferList buffers,
                                std::uint64_t size, PutMode mode) const {
  const std::string name = get_key(key);
  const std::string ttl = std::to_string(settings_->options.ttl.count());
  const bool expires = settings_->options.ttl.count() > 0;
  const bool is_new_only = mode == PutMode::if_absent;
  FramedCommand framed;
  if (is_new_only && expires) {
    framed = encode_set(name, size, {"NX", "PX", ttl});
  } else if (is_new_only) {
    framed = encode_set(name, size, {"NX"});
  } else if (expires) {
    framed = encode_set(name, size, {"PX", ttl});
  } else {
    framed = encode_set(name, size, {});
  }
  Command command;
  command.head = std::move(framed.head);
  command.payload = buffers;
  command.tail = std::move(framed.tail);
  command.slot = hash_slot(name);
  return command;
}

StoreResult RedisStore::put_result(const Command& command, std::uint64_t size, PutMode mode) {
  if (!command.answered) return command.fault.result();
  const Reply& reply = command.reply;
  if (reply.type == ReplyType::text) {
    refused_puts_.end();
    return {StoreStatus::ok, size};
  }
  // With NX: one was there already, of a size that we are not told. It is looked for only after the
  // server has found that it may write.
  if (reply.type == ReplyType::nil && mode == PutMode::if_absent) {
    refused_puts_.end();
    return {StoreStatus::ok};
  }
  if (!reply.is_error()) return odd_answer().result();
  const Fault fault = fault_of(reply);
  // That one is too large says nothing about others; the client has told the node.
  if (fault.status != StoreStatus::too_large)
    refused_puts_.begin("puts are refused: " + fault.detail);
  return fault.result();
}

std::vector<StoreResult> RedisStore::batch_put_from_multi_buffers(
    std::span<const EmbeddingKey> keys, std::span<const ConstBufferList> buffers, PutMode mode,
    const StoreContext& context) {
  if (keys.size() != buffers.size()) return same_for_all(keys.size(), StoreStatus::invalid);
  if (const auto reason = stop_reason(context)) return same_for_all(keys.size(), *reason);
  const std::uint64_t limit = capabilities().max_value_bytes;
  std::vector<StoreResult> results(keys.size());
  std::vector<Command> commands;
  commands.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t size = total_bytes(buffers[i]);
    results[i] = {check_value_size(size, limit), size};
    if (!results[i].ok()) continue;
    commands.push_back(put_command(keys[i], buffers[i], size, mode));
    commands.back().key_index = i;
  }
  client_.run(commands, Use::write, context);
  for (const Command& command : commands) {
    StoreResult& result = results[command.key_index];
    result = put_result(command, result.size, mode);
  }
  return results;
}

std::vector<StoreResult> RedisStore::ask_each(std::span<const EmbeddingKey> keys,
                                              std::string_view verb, Use use,
                                              StoreResult (*result_of)(const Command&),
                                              const StoreContext& context) {
  if (const auto reason = stop_reason(context)) return same_for_all(keys.size(), *reason);
  std::vector<Command> commands(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name = get_key(keys[i]);
    commands[i].head = encode_command({verb, name});
    commands[i].slot = hash_slot(name);
  }
  client_.run(commands, use, context);
  std::vector<StoreResult> results;
  results.reserve(keys.size());
  for (const Command& command : commands) results.push_back(result_of(command));
  return results;
}

std::vector<StoreResult> RedisStore::batch_is_exist(std::span<const EmbeddingKey> keys,
                                                    const StoreContext& context) {
  return ask_each(keys, "STRLEN", Use::read, exist_result, context);
}

std::vector<StoreResult> RedisStore::batch_remove(std::span<const EmbeddingKey> keys,
                                                  const StoreContext& context) {
  return ask_each(keys, "UNLINK", Use::write, remove_result, context);
}

StoreResult RedisStore::claim(const EmbeddingKey& key, std::chrono::milliseconds ttl,
                              ClaimToken& token, const StoreContext& context) {
  if (const auto reason = stop_reason(context)) return {*reason};
  const std::string name = claim_name(key);
  token.value = make_token();
  Command command;
  command.head = encode_claim(name, token.value, ttl);
  command.slot = hash_slot(name);
  command.repeatable = false;  // the second time our own claim would be in the way
  client_.run({&command, 1}, Use::read, context);
  if (!command.answered) return command.fault.result();
  if (command.reply.type == ReplyType::text) return {};
  if (command.reply.type == ReplyType::nil) return {StoreStatus::conflict};
  return result_of_error(command.reply);
}

StoreResult RedisStore::ask_holder(const std::string& name, std::string head,
                                   const StoreContext& context) {
  if (const auto reason = stop_reason(context)) return {*reason};
  Command command;
  command.head = std::move(head);
  command.slot = hash_slot(name);
  command.repeatable = false;
  client_.run({&command, 1}, Use::read, context);
  if (!command.answered) return command.fault.result();
  const bool is_count = command.reply.type == ReplyType::integer && command.reply.number >= 0;
  if (!is_count) return result_of_error(command.reply);
  return {command.reply.number == 1 ? StoreStatus::ok : StoreStatus::conflict};
}

}  // namespace
}  // namespace redis

std::unique_ptr<EmbeddingStore> make_redis_store(const RedisStoreOptions& options) {
  redis::check_options(options);
  auto settings = std::make_shared<redis::Settings>();
  settings->options = options;
  if (options.tls) settings->tls = std::make_shared<const redis::TlsContext>(options);
  auto store = std::make_unique<redis::RedisStore>(std::move(settings));
  if (options.strict && !store->wait_for_first_attempt()) {
    throw Error(ErrorCode::invalid_argument, "redis store: the server cannot be used",
                store->health().detail);
  }
  return store;
}

std::unique_ptr<EmbeddingStore> create_redis_store(const StoreUrl& url, StoreOptions& options) {
  const RedisStoreOptions chosen = redis::read_options(url, options);
  options.reject_unknown();
  return make_redis_store(chosen);
}

}  // namespace vitrove
