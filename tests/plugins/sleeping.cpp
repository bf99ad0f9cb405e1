// A store that hangs for as long as the file named by its option exists, deaf to deadlines and to
// being cancelled, as an engine does that has stopped answering. Otherwise the memory store. With
// `health=yes` it hangs as well when it is asked how it is, and makes a file beside that tells so.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "vitrove/memory_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace {

using vitrove::StoreResult;
using Keys = std::span<const vitrove::EmbeddingKey>;

class SleepingStore final : public vitrove::EmbeddingStore {
 public:
  SleepingStore(std::filesystem::path while_exists, bool in_health)
      : while_exists_(std::move(while_exists)),
        in_health_(in_health),
        awake_(vitrove::make_memory_store()) {}

  std::string_view name() const override { return "sleeping"; }

  std::vector<StoreResult> batch_get_into_multi_buffers(
      Keys keys, std::span<const vitrove::MutableBufferList> buffers,
      const vitrove::StoreContext& context) override {
    sleep();
    return awake_->batch_get_into_multi_buffers(keys, buffers, context);
  }

  std::vector<StoreResult> batch_put_from_multi_buffers(
      Keys keys, std::span<const vitrove::ConstBufferList> buffers, vitrove::PutMode mode,
      const vitrove::StoreContext& context) override {
    sleep();
    return awake_->batch_put_from_multi_buffers(keys, buffers, mode, context);
  }

  std::vector<StoreResult> batch_is_exist(Keys keys,
                                          const vitrove::StoreContext& context) override {
    sleep();
    return awake_->batch_is_exist(keys, context);
  }

  vitrove::StoreCapabilities capabilities() const override {
    auto capabilities = awake_->capabilities();
    capabilities.can_remove = capabilities.can_list = capabilities.can_claim = false;
    return capabilities;
  }

  vitrove::StoreHealth health() const override {
    if (in_health_ && is_told_to()) {
      std::ofstream(while_exists_.string() + ".asked");
      sleep();
    }
    return awake_->health();
  }

 private:
  bool is_told_to() const {
    std::error_code ignored;
    return std::filesystem::exists(while_exists_, ignored);
  }
  void sleep() const {
    while (is_told_to()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const std::filesystem::path while_exists_;
  const bool in_health_;
  const std::unique_ptr<vitrove::EmbeddingStore> awake_;
};

std::unique_ptr<vitrove::EmbeddingStore> create(const vitrove::StoreUrl&,
                                                vitrove::StoreOptions& options) {
  return std::make_unique<SleepingStore>(options.text("while_exists", ""),
                                         options.text("health", "") == "yes");
}

constexpr vitrove_option options[] = {
    {"while_exists", "the file that makes it hang"}, {"health", "yes: hangs there, too"}, {}};
constexpr auto table = vitrove::make_store_plugin<create>("sleeping", "1.0", options);

}  // namespace

const vitrove_store_plugin* vitrove_store_plugin_v1() { return &table; }
