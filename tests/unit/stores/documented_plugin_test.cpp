// The plugin that docs/write-a-backend.md shows: it is the one that is built here, and it keeps the
// contract.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "contract/store_contract.h"
#include "support/paths.h"
#include "vitrove/embedding_store_factory.h"

namespace vitrove::testing {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(DocumentedPlugin, IsTheOneThatIsBuilt) {
  const std::string source = text_of(test::source_dir() / "tests" / "plugins" / "shelf.cpp");
  ASSERT_GT(source.size(), 1000u);
  const std::string page = text_of(test::source_dir() / "docs" / "write-a-backend.md");
  EXPECT_NE(page.find("```cpp\n" + source + "```\n"), std::string::npos)
      << "docs/write-a-backend.md does not hold tests/plugins/shelf.cpp as it is";
}

class ShelfHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return nullptr; }

 private:
  std::unique_ptr<EmbeddingStore> store_ = EmbeddingStoreFactory::with_builtins().create_backend(
      (test::binary_dir() / "test-plugins" / "libvitrove_store_shelf.so").string());
};
INSTANTIATE_TYPED_TEST_SUITE_P(DocumentedPlugin, StoreContract, ShelfHarness, );

}  // namespace
}  // namespace vitrove::testing
