// A plugin whose constructor throws what the option says, or whose store throws at every call.
#include <stdexcept>

#include "vitrove/store_plugin_adapter.h"

namespace {

class ThrowingStore final : public vitrove::EmbeddingStore {
 public:
  std::string_view name() const override { return "throwing"; }
  std::vector<vitrove::StoreResult> batch_get_into_multi_buffers(
      std::span<const vitrove::EmbeddingKey>, std::span<const vitrove::MutableBufferList>,
      const vitrove::StoreContext&) override {
    throw std::runtime_error("get");
  }
  std::vector<vitrove::StoreResult> batch_put_from_multi_buffers(
      std::span<const vitrove::EmbeddingKey>, std::span<const vitrove::ConstBufferList>,
      vitrove::PutMode, const vitrove::StoreContext&) override {
    throw 42;
  }
  // One result too few.
  std::vector<vitrove::StoreResult> batch_is_exist(std::span<const vitrove::EmbeddingKey> keys,
                                                   const vitrove::StoreContext&) override {
    return std::vector<vitrove::StoreResult>(keys.size() - 1);
  }
  vitrove::StoreCapabilities capabilities() const override { return {}; }
  vitrove::StoreHealth health() const override { throw std::runtime_error("health"); }
};

std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl&,
                                                vitrove::StoreOptions& options) {
  const std::string what = options.text("what", "exception");
  if (what == "exception") throw std::runtime_error("no engine here");
  if (what == "error") {
    throw vitrove::Error(vitrove::ErrorCode::invalid_argument, "bad engine", "at 10.0.0.1");
  }
  if (what == "number") throw 42;
  if (what == "nothing") return nullptr;
  return std::make_unique<ThrowingStore>();
}

constexpr vitrove_option options[] = {{"what", "exception, error, number, nothing, or store"}, {}};
constexpr auto table = vitrove::make_store_plugin<create>("throwing", "1.0", options);

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
