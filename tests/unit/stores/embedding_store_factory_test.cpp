// Field case B79: every way of choosing a backend works, or ends in one clear line.
#include "vitrove/embedding_store_factory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "contract/store_contract.h"
#include "support/paths.h"
#include "vitrove/error.h"
#include "vitrove/memory_store.h"
#include "vitrove/store_plugin_adapter.h"

namespace vitrove::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

const fs::path plugin_directory = test::binary_dir() / "test-plugins";

fs::path plugin_file(const std::string& name) {
  return plugin_directory / ("libvitrove_store_" + name + ".so");
}

class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

struct Refusal {
  std::string message = "no error";
  std::string detail;
};

Refusal refusal_of(std::string_view name_or_url,
                   const std::map<std::string, std::string>& config = {}) {
  try {
    EmbeddingStoreFactory::with_builtins().create_backend(name_or_url, config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find(plugin_directory.string()), std::string::npos);
    return {error.what(), error.detail()};
  }
  return {};
}

TEST(EmbeddingStoreFactory, MakesABackendFromAUrlOrANameWithOptions) {
  const auto factory = EmbeddingStoreFactory::with_builtins();
  EXPECT_EQ(factory.create_backend("memory:?capacity=3MiB")->health().capacity, 3u << 20);
  EXPECT_EQ(factory.create_backend("memory", {{"capacity", "2KiB"}})->health().capacity, 2048u);
  EXPECT_EQ(factory.create_backend("MEMORY")->name(), "memory");
  EXPECT_EQ(factory.create_backend("memory:", {{"capacity", "1KiB"}})->health().capacity, 1024u);
}

TEST(EmbeddingStoreFactory, ListsWhatIsAvailableWhenTheNameIsUnknown) {
  EXPECT_THAT(refusal_of("nosuch").message, AllOf(HasSubstr("'nosuch'"), HasSubstr("memory")));
  EXPECT_THAT(refusal_of("nosuch://host:1").message, HasSubstr("memory"));
  EXPECT_THAT(refusal_of("").message, HasSubstr("memory"));
  EXPECT_THAT(refusal_of("not a name").message, HasSubstr("memory"));
  const ScopedVariable path("VITROVE_PLUGIN_PATH", "/nonexistent:" + plugin_directory.string());
  EXPECT_THAT(refusal_of("nosuch").message,
              AllOf(HasSubstr("memory"), HasSubstr("wrapped_memory")));
  EXPECT_THAT(EmbeddingStoreFactory::with_builtins().available(),
              AllOf(Contains("memory"), Contains("wrapped_memory"), Contains("no_symbol")));
}

TEST(EmbeddingStoreFactory, RefusesUnknownOptionsAndListsTheKnownOnes) {
  EXPECT_THAT(refusal_of("memory:?capcity=1GiB").message,
              AllOf(HasSubstr("'capcity'"), HasSubstr("capacity")));
  EXPECT_THAT(refusal_of("memory", {{"size", "1"}}).message, HasSubstr("'size'"));
  EXPECT_THAT(refusal_of("memory:?capacity=lots").message, HasSubstr("'capacity'"));
  EXPECT_THAT(refusal_of("memory:?capacity=0").message, HasSubstr("capacity"));
  EXPECT_THAT(refusal_of("memory:?capacity=1", {{"capacity", "2"}}).message,
              HasSubstr("given twice"));
  EXPECT_THAT(refusal_of("memory://host").message, HasSubstr("no host"));
}

TEST(EmbeddingStoreFactory, NeverShowsAPassword) {
  const Refusal refusal = refusal_of("redis://:hush@host:xyz");
  EXPECT_THAT(refusal.message + refusal.detail, Not(HasSubstr("hush")));
  EXPECT_THAT(refusal.detail, HasSubstr("***"));
}

TEST(EmbeddingStoreFactory, TakesABackendOfTheCallers) {
  auto factory = EmbeddingStoreFactory::with_builtins();
  factory.register_backend({"mine", "mine2"}, [](const StoreUrl& url, StoreOptions& options) {
    EXPECT_EQ(url.host, "somewhere");
    EXPECT_EQ(options.integer("n", 0), 5);
    return make_memory_store();
  });
  EXPECT_TRUE(factory.create_backend("mine://somewhere?n=5"));
  EXPECT_TRUE(factory.create_backend("mine2://somewhere?n=5"));
  EXPECT_THROW(factory.create_backend("mine://somewhere?n=5&m=1"), Error);
  EXPECT_THAT(factory.available(), AllOf(Contains("mine"), Not(Contains("mine2"))));

  EmbeddingStoreFactory moved = std::move(factory);
  EXPECT_TRUE(moved.create_backend("mine://somewhere?n=5"));
}

TEST(EmbeddingStoreFactory, RefusesANameThatIsTakenOrBad) {
  auto factory = EmbeddingStoreFactory::with_builtins();
  const auto creator = [](const StoreUrl&, StoreOptions&) { return make_memory_store(); };
  EXPECT_THROW(factory.register_backend({"memory"}, creator), Error);
  EXPECT_THROW(factory.register_backend({"new", "memory"}, creator), Error);
  EXPECT_THROW(factory.register_backend({"new", "new"}, creator), Error);
  EXPECT_THROW(factory.register_backend({"Upper"}, creator), Error);
  EXPECT_THROW(factory.register_backend({}, creator), Error);
  EXPECT_THROW(factory.register_backend({"new"}, nullptr), Error);
  EXPECT_NO_THROW(factory.register_backend({"new"}, creator));  // nothing of the above stayed
}

TEST(EmbeddingStoreFactory, TurnsWhatACreatorThrowsIntoOneError) {
  EmbeddingStoreFactory factory;
  factory.register_backend({"bad"},
                           [](const StoreUrl&, StoreOptions&) -> std::unique_ptr<EmbeddingStore> {
                             throw std::runtime_error("the engine's own words");
                           });
  factory.register_backend(
      {"null"}, [](const StoreUrl&, StoreOptions&) { return std::unique_ptr<EmbeddingStore>(); });
  EXPECT_THROW(factory.create_backend("bad"), Error);
  EXPECT_THROW(factory.create_backend("null"), Error);
}

TEST(StorePlugin, IsFoundByNameOnThePluginPath) {
  const ScopedVariable path("VITROVE_PLUGIN_PATH", "/nonexistent:" + plugin_directory.string());
  const auto factory = EmbeddingStoreFactory::with_builtins();
  const auto store = factory.create_backend("wrapped_memory:?capacity=1MiB");
  EXPECT_EQ(store->name(), "wrapped_memory");
  EXPECT_EQ(store->health().capacity, 1u << 20);
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 1000));
  EXPECT_TRUE(factory.create_backend("wrapped_memory", {{"capacity", "1MiB"}}));
}

TEST(StorePlugin, IsLoadedByPath) {
  const auto factory = EmbeddingStoreFactory::with_builtins();
  const std::string file = plugin_file("wrapped_memory").string();
  EXPECT_EQ(factory.create_backend(file)->name(), "wrapped_memory");
  EXPECT_EQ(factory.create_backend(file + "?capacity=1KiB")->health().capacity, 1024u);
}

TEST(StorePlugin, OutlivesItsFactory) {
  std::unique_ptr<EmbeddingStore> store;
  {
    const auto factory = EmbeddingStoreFactory::with_builtins();
    store = factory.create_backend(plugin_file("wrapped_memory").string());
  }
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
  EXPECT_EQ(read_back(*store, key_number(1)), pattern(1, 1000));
}

TEST(StorePlugin, RefusesAnUnknownOptionAndListsTheKnownOnes) {
  EXPECT_THAT(refusal_of(plugin_file("wrapped_memory").string() + "?size=1").message,
              AllOf(HasSubstr("'size'"), HasSubstr("known are capacity")));
}

TEST(StorePlugin, SaysWhatIsWrongWithTheFile) {
  EXPECT_THAT(refusal_of("/nonexistent/libvitrove_store_x.so").message,
              AllOf(HasSubstr("libvitrove_store_x.so"), HasSubstr("no such file")));
  EXPECT_THAT(refusal_of("/nonexistent/libvitrove_store_x.so").detail, HasSubstr("/nonexistent/"));
  EXPECT_THAT(refusal_of(plugin_file("no_symbol").string()).message,
              HasSubstr("does not export vitrove_store_plugin_v1"));

  const fs::path text = fs::temp_directory_path() / ("not-a-library-" + std::to_string(::getpid()));
  std::ofstream(text) << "hello";
  EXPECT_THAT(refusal_of(text.string()).message, HasSubstr("cannot be loaded"));
  fs::remove(text);
}

TEST(StorePlugin, RefusesABrokenTable) {
  const std::map<std::string, std::string> expected = {
      {"null", "no table"},           {"empty", "too short"},
      {"short", "too short"},         {"abi", "plugin ABI 99"},
      {"no_function", "missing"},     {"no_name", "no proper name"},
      {"bad_name", "no proper name"}, {"taken_name", "already registered"}};
  for (const auto& [how, message] : expected) {
    const ScopedVariable variable("VITROVE_TEST_BROKEN_TABLE", how);
    EXPECT_THAT(refusal_of(plugin_file("broken_table").string()).message, HasSubstr(message))
        << how;
  }
  const ScopedVariable path("VITROVE_PLUGIN_PATH", plugin_directory.string());
  const ScopedVariable variable("VITROVE_TEST_BROKEN_TABLE", "taken_name");
  EXPECT_THAT(refusal_of("broken_table:").message, HasSubstr("calls itself 'memory'"));
}

TEST(StorePlugin, TurnsAConstructorThatThrowsIntoOneError) {
  const std::string file = plugin_file("throwing").string();
  EXPECT_THAT(refusal_of(file).detail, HasSubstr("no engine here"));
  EXPECT_THAT(refusal_of(file).message, HasSubstr("could not be created"));
  EXPECT_THAT(refusal_of(file + "?what=error").detail, HasSubstr("bad engine: at 10.0.0.1"));
  EXPECT_THAT(refusal_of(file + "?what=number").message, HasSubstr("could not be created"));
  EXPECT_THAT(refusal_of(file + "?what=nothing").message, HasSubstr("could not be created"));
}

TEST(StorePlugin, TurnsWhatItsStoreThrowsIntoIoErrors) {
  const auto store = EmbeddingStoreFactory::with_builtins().create_backend(
      plugin_file("throwing").string() + "?what=store");
  Bytes bytes(10);
  EXPECT_EQ(get_one(*store, key_number(1), bytes).status, StoreStatus::io_error);
  EXPECT_EQ(put_one(*store, key_number(1), bytes).status, StoreStatus::io_error);
  const auto keys = key_numbers(3);
  const auto results = store->batch_is_exist(keys, {});
  ASSERT_EQ(results.size(), 3u);
  for (const StoreResult& result : results) EXPECT_EQ(result.status, StoreStatus::io_error);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  EXPECT_EQ(remove_one(*store, key_number(1)).status, StoreStatus::unsupported);
  EXPECT_EQ(store->list({}, [](const ListedValue&) { return true; }, {}).status,
            StoreStatus::unsupported);
  ClaimToken token;
  EXPECT_EQ(store->claim(key_number(1), std::chrono::seconds(1), token, {}).status,
            StoreStatus::unsupported);
}

TEST(StorePlugin, PassesOnWhatAVisitorThrows) {
  const auto store =
      EmbeddingStoreFactory::with_builtins().create_backend(plugin_file("wrapped_memory").string());
  ASSERT_TRUE(put_one(*store, key_number(1), pattern(1, 1000)).ok());
  const auto visit = [](const ListedValue&) -> bool { throw std::logic_error("mine"); };
  EXPECT_THROW(store->list({}, visit, {}), std::logic_error);
}

class TableOfAnotherRelease : public ::testing::TestWithParam<const char*> {};

TEST_P(TableOfAnotherRelease, IsUsedAsFarAsItReaches) {
  const ScopedVariable age("VITROVE_TEST_TABLE", GetParam());
  const ScopedVariable path("VITROVE_PLUGIN_PATH", plugin_directory.string());
  const auto store =
      EmbeddingStoreFactory::with_builtins().create_backend("old_and_new://host:7/a%20b");
  Bytes arena(64);
  store->register_buffer(arena);
  store->unregister_buffer(arena);

  Bytes bytes(3);
  EXPECT_TRUE(get_one(*store, key_number(1), bytes).ok());
  EXPECT_EQ(bytes[0], std::byte{'a'});
  EXPECT_EQ(put_one(*store, key_number(1), bytes).status, StoreStatus::io_error);
  for (const StoreResult& result : store->batch_is_exist(key_numbers(2), {})) {
    EXPECT_EQ(result.status, StoreStatus::io_error);
  }
  const StoreCapabilities capabilities = store->capabilities();
  EXPECT_FALSE(capabilities.can_remove);  // says so, but has no such function
  EXPECT_FALSE(capabilities.can_list);
  EXPECT_EQ(capabilities.max_value_bytes, StoreCapabilities{}.max_value_bytes);
  EXPECT_EQ(store->health().state, StoreState::degraded);
  EXPECT_EQ(store->health().detail, std::string(256, 'x'));
  EXPECT_EQ(remove_one(*store, key_number(1)).status, StoreStatus::unsupported);
}

INSTANTIATE_TEST_SUITE_P(Ages, TableOfAnotherRelease, ::testing::Values("old", "new"));

// The other way round: an older host's structs are shorter than the plugin's.
TEST(StorePlugin, FillsAnOlderHostsStructsNoFurtherThanTheyReach) {
  struct {
    vitrove_capabilities known{};
    std::uint64_t behind = 0x1234;
  } shorter;
  constexpr std::size_t reach = offsetof(vitrove_capabilities, can_claim);
  std::memset(&shorter.known, 0xCC, sizeof shorter.known);
  shorter.known.struct_size = reach;
  const auto store = make_memory_store();
  plugin_adapter::capabilities(reinterpret_cast<vitrove_store*>(store.get()), &shorter.known);
  EXPECT_EQ(shorter.known.struct_size, reach);
  EXPECT_EQ(shorter.known.can_remove, 1);
  EXPECT_EQ(shorter.known.can_list, 1);
  EXPECT_EQ(shorter.known.can_claim, static_cast<std::int32_t>(0xCCCCCCCC));
  EXPECT_EQ(shorter.behind, 0x1234u);

  vitrove_context old_context{};
  old_context.struct_size = offsetof(vitrove_context, trace_id);
  old_context.deadline_ns = std::numeric_limits<std::int64_t>::max();
  old_context.trace_id = reinterpret_cast<const char*>(1);  // behind the end: not to be read
  const plugin_adapter::Call call(&old_context);
  EXPECT_TRUE(call.context().trace_id.empty());
  EXPECT_EQ(call.context().observer, nullptr);
  EXPECT_EQ(call.context().deadline, std::chrono::steady_clock::time_point::max());
}

class PluginHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return nullptr; }

 private:
  std::unique_ptr<EmbeddingStore> store_ =
      EmbeddingStoreFactory::with_builtins().create_backend(plugin_file("wrapped_memory").string());
};
INSTANTIATE_TYPED_TEST_SUITE_P(Plugin, StoreContract, PluginHarness, );

}  // namespace
}  // namespace vitrove::testing
