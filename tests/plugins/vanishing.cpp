// A store whose values go between a look and a get, for as long as the file named by its option
// exists: what batch_is_exist() has found is removed before it returns. Otherwise the memory store.
#include <filesystem>
#include <utility>

#include "vitrove/memory_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace {

using vitrove::StoreResult;
using Keys = std::span<const vitrove::EmbeddingKey>;

class VanishingStore final : public vitrove::EmbeddingStore {
 public:
  explicit VanishingStore(std::filesystem::path while_exists)
      : while_exists_(std::move(while_exists)), values_(vitrove::make_memory_store()) {}

  std::string_view name() const override { return "vanishing"; }

  std::vector<StoreResult> batch_get_into_multi_buffers(
      Keys keys, std::span<const vitrove::MutableBufferList> buffers,
      const vitrove::StoreContext& context) override {
    return values_->batch_get_into_multi_buffers(keys, buffers, context);
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(
      Keys keys, std::span<const vitrove::ConstBufferList> buffers, vitrove::PutMode mode,
      const vitrove::StoreContext& context) override {
    return values_->batch_put_from_multi_buffers(keys, buffers, mode, context);
  }

  std::vector<StoreResult> batch_is_exist(Keys keys,
                                          const vitrove::StoreContext& context) override {
    auto found = values_->batch_is_exist(keys, context);
    std::error_code ignored;
    if (std::filesystem::exists(while_exists_, ignored)) values_->batch_remove(keys, context);
    return found;
  }

  vitrove::StoreCapabilities capabilities() const override {
    auto capabilities = values_->capabilities();
    capabilities.can_remove = capabilities.can_list = capabilities.can_claim = false;
    return capabilities;
  }

  vitrove::StoreHealth health() const override { return values_->health(); }

 private:
  const std::filesystem::path while_exists_;
  const std::unique_ptr<vitrove::EmbeddingStore> values_;
};

std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl&,
                                                vitrove::StoreOptions& options) {
  return std::make_unique<VanishingStore>(options.text("while_exists", ""));
}

constexpr vitrove_option options[] = {{"while_exists", "the file that makes values vanish"}, {}};
constexpr auto table = vitrove::make_store_plugin<create>("vanishing", "1.0", options);

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
