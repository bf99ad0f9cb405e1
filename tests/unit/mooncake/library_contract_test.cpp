// The contract over provider (b): the C interface, here of a library of ours.
#include "contract/store_contract.h"
#include "unit/mooncake/fake_cluster.h"

namespace vitrove::testing {
namespace {

class LibraryHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make_mooncake_store(cluster_.options()); }

 private:
  FakeCluster cluster_;
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(cluster_.options());
};
INSTANTIATE_TYPED_TEST_SUITE_P(MooncakeLibrary, StoreContract, LibraryHarness, );

}  // namespace
}  // namespace vitrove::testing
