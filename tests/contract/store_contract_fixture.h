// The fixture of the store contract (store_contract.h): what every one of its tests stands on.
#pragma once

#include <cstddef>

#include <gtest/gtest.h>

#include "contract/test_values.h"

namespace vitrove::testing {

template <typename Harness>
class StoreContract : public ::testing::Test {
 protected:
  EmbeddingStore& store() { return harness_.store(); }
  Harness& harness() { return harness_; }

  void put_ok(const EmbeddingKey& key, ConstBuffer value, PutMode mode = PutMode::if_absent) {
    const StoreResult result = put_one(store(), key, value, mode);
    ASSERT_EQ(to_string(result.status), "ok") << "errno " << result.error_number;
  }

  static constexpr std::byte untouched{0xA5};

 private:
  Harness harness_;
};

TYPED_TEST_SUITE_P(StoreContract);

}  // namespace vitrove::testing
