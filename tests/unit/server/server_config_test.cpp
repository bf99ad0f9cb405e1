#include "server/server_config.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <unistd.h>

#include "contract/temporary_directory.h"
#include "support.h"

namespace vitrove::test {
namespace {

// Sets a variable, or removes it, for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

std::string refusal(const std::function<void(ServerConfig&)>& change) {
  ServerConfig config = small_config();
  change(config);
  const Failure failure = failure_of([&] {
    check_config(config);
    resolve_store_urls(config);
  });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure.message.find('\n'), std::string::npos);
  return failure.message;
}

TEST(ServerConfig, DefaultsAreGoodOnceAnEncoderIsNamed) {
  ServerConfig config;
  EXPECT_EQ(failure_of([&] { check_config(config); }).code, ErrorCode::invalid_argument);
  config.encoder = "stub:";
  check_config(config);
}

TEST(ServerConfig, NamesTheOptionThatIsWrong) {
  EXPECT_NE(refusal([](auto& c) { c.eviction_policy = "mru"; }).find("lru"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.modality_shares = {"image=0.2"}; }).find("--modality-share"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) {
              c.modality_shares = {"image=0.7:", "video=0.7:"};
            }).find("--modality-share: the least shares"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.max_items = 0; }).find("--max-items"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.log_level = "loud"; }).find("--log-level"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.request_timeout = {}; }).find("--request-timeout"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) {
              c.api_keys = {"a"};
              c.tenant_keys_file = "f";
            }).find("--tenant-keys"),
            std::string::npos);
}

TEST(ServerConfig, RefusesTimesThatNoClockCanCount) {
  ServerConfig config;
  config.encoder = "stub:";
  config.request_timeout = std::chrono::hours(24 * 365);
  EXPECT_NO_THROW(check_config(config));
  config.request_timeout += std::chrono::microseconds(1);
  EXPECT_EQ(failure_of([&] { check_config(config); }).message,
            "--request-timeout must be at most 365d");
  config.request_timeout = std::chrono::seconds(60);
  config.drain_delay = std::chrono::microseconds::max();
  EXPECT_EQ(failure_of([&] { check_config(config); }).message,
            "--drain-delay must be at most 365d");
}

TEST(ServerConfig, NoneTurnsSharingOffAndStandsAlone) {
  ServerConfig config = small_config();
  EXPECT_TRUE(resolve_store_urls(config).empty());
  EXPECT_NE(refusal([](auto& c) {
              c.stores = {"none", "memory:"};
            }).find("none"),
            std::string::npos);
  config.stores = {"memory:", "file:///tmp/x"};
  EXPECT_EQ(resolve_store_urls(config), config.stores);
}

TEST(ServerConfig, TheDefaultStoreIsAFileStore) {
  ServerConfig config = small_config();
  config.stores.clear();
  const Environment cache("XDG_CACHE_HOME", "/cache");
  const std::string expected =
      ::geteuid() == 0 ? "file:///var/lib/vitrove" : "file:///cache/vitrove";
  EXPECT_EQ(resolve_store_urls(config), std::vector<std::string>{expected});
}

TEST(ServerConfig, SglangSpellingsMeanAStore) {
  ServerConfig config = small_config();
  config.stores.clear();
  config.enable_mm_global_cache = true;
  {
    const Environment path("MOONCAKE_CONFIG_PATH", "/etc/mooncake.json");
    EXPECT_EQ(resolve_store_urls(config), std::vector<std::string>{"mooncake"});
  }
  {
    const Environment path("MOONCAKE_CONFIG_PATH", nullptr);
    const Failure failure = failure_of([&] { resolve_store_urls(config); });
    EXPECT_NE(failure.message.find("MOONCAKE_CONFIG_PATH"), std::string::npos);
  }
  config.mm_global_cache_backend = "file";
  ServerConfig plain = small_config();
  plain.stores.clear();
  EXPECT_EQ(resolve_store_urls(config), resolve_store_urls(plain)) << "the default directory";
  config.mm_global_cache_backend = "memory";
  EXPECT_EQ(resolve_store_urls(config), std::vector<std::string>{"memory"});
}

TEST(ServerConfig, SglangSpellingsExcludeStoresAndNeedTheSwitch) {
  EXPECT_NE(refusal([](auto& c) { c.enable_mm_global_cache = true; }).find("--store"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) {
              c.mm_global_cache_backend = "mooncake";
            }).find("--enable-mm-global-cache"),
            std::string::npos);
}

TEST(EncodeServiceFromConfig, ReportsAWrongStoreOrEncoderInOneLine) {
  ServerConfig config = small_config();
  config.stores = {"nosuch://host"};
  EXPECT_EQ(failure_of([&] { EncodeService::from_config(config); }).code,
            ErrorCode::invalid_argument);
  config = small_config();
  config.encoder = "stub:wings=2";
  EXPECT_EQ(failure_of([&] { EncodeService::from_config(config); }).code,
            ErrorCode::invalid_argument);
}

TEST(EncodeServiceFromConfig, AStartThatFailsLeavesNoStoreBehind) {
  const testing::TemporaryDirectory folder;
  const auto store = folder.path() / "store";
  ServerConfig config = small_config();
  config.stores = {"file://" + store.string()};
  config.page_size = 3 * 1024;
  EXPECT_EQ(failure_of([&] { EncodeService::from_config(config); }).code,
            ErrorCode::invalid_argument);
  config.page_size = 64 * 1024;
  config.encoder = "stub:wings=2";
  EXPECT_EQ(failure_of([&] { EncodeService::from_config(config); }).code,
            ErrorCode::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(store));
}

TEST(EncodeServiceFromConfig, BuildsAServiceThatEncodes) {
  ServerConfig config = small_config();
  config.stores = {"memory:?capacity=16MiB"};
  const auto service = EncodeService::from_config(config);
  EXPECT_EQ(encode(*service, {1}).at(0).source, Source::encoded);
  EXPECT_EQ(encode(*service, {1}).at(0).source, Source::local);
}

}  // namespace
}  // namespace vitrove::test
