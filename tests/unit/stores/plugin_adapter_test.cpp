// The C++ side of a plugin, called as a host would: what does not fit through the C functions.
#include <array>
#include <optional>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "contract/valueless_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace vitrove::test {
namespace {

// Throws wherever a host cannot be told, and claims with a token of the wanted length.
class AwkwardStore final : public testing::ValuelessStore {
 public:
  StoreCapabilities capabilities() const override { throw std::runtime_error("unknown"); }
  void register_buffer(MutableBuffer) override { throw std::runtime_error("no pages"); }
  void unregister_buffer(MutableBuffer) override { throw 42; }

  StoreResult claim(const EmbeddingKey&, std::chrono::milliseconds, ClaimToken& token,
                    const StoreContext&) override {
    token.value = std::string(token_length, 't');
    held = token.value;
    return {};
  }
  StoreResult release(const EmbeddingKey&, const ClaimToken& token, ClaimOutcome,
                      const StoreContext&) override {
    if (held == token.value) held.reset();
    return {};
  }

  vitrove_store* handle() {
    return reinterpret_cast<vitrove_store*>(static_cast<EmbeddingStore*>(this));
  }

  std::size_t token_length = 63;
  std::optional<std::string> held;
};

TEST(PluginAdapter, LetsNothingOutOfCallsThatCannotFail) {
  AwkwardStore store;
  std::byte page{};
  plugin_adapter::register_buffer(store.handle(), &page, 1);
  plugin_adapter::unregister_buffer(store.handle(), &page, 1);
  vitrove_capabilities known{};
  known.struct_size = sizeof known;
  known.can_claim = 1;
  plugin_adapter::capabilities(store.handle(), &known);
  EXPECT_EQ(known.can_claim, 0);
  EXPECT_EQ(known.max_value_bytes, StoreCapabilities{}.max_value_bytes);
}

TEST(PluginAdapter, AClaimWhoseTokenDoesNotFitIsGivenBackAtOnce) {
  AwkwardStore store;
  vitrove_context context{};
  context.struct_size = sizeof context;
  context.deadline_ns = std::numeric_limits<std::int64_t>::max();
  const vitrove_key key{};
  std::array<char, plugin_adapter::token_size> token{};
  const auto claim = [&] {
    return plugin_adapter::claim(store.handle(), &key, 1000, token.data(), &context).status;
  };

  EXPECT_EQ(claim(), static_cast<std::int32_t>(StoreStatus::ok));
  EXPECT_EQ(store.held, std::string(token.data()));
  store.token_length = 64;
  EXPECT_EQ(claim(), static_cast<std::int32_t>(StoreStatus::io_error));
  EXPECT_FALSE(store.held) << "nobody could release it";
}

}  // namespace
}  // namespace vitrove::test
