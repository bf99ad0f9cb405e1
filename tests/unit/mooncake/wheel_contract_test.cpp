// The contract over provider (a): the Python wheel, a real master and a real capacity holder.
#include "contract/store_contract.h"
#include "unit/mooncake/mooncake_cluster.h"

namespace vitrove::testing {
namespace {

class WheelHarness {
 public:
  EmbeddingStore& store() { return *store_; }
  std::unique_ptr<EmbeddingStore> open() { return make_mooncake_store(options_); }

 private:
  const MooncakeStoreOptions options_ = shared_cluster().options();
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(options_);
};
INSTANTIATE_TYPED_TEST_SUITE_P(MooncakeWheel, StoreContract, WheelHarness, );

}  // namespace
}  // namespace vitrove::testing
