// The part of the store contract about claims (one encode in a cluster): embedding_store.h says
// what they promise. Stores that cannot claim have to say so. Included by store_contract.h, which
// registers the suite; of no use alone.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "contract/store_contract_fixture.h"
#include "contract/test_values.h"

namespace vitrove::testing {

// Who cannot claim says so to each of the calls.
inline void expect_no_claims(EmbeddingStore& store) {
  ClaimToken token;
  const EmbeddingKey key = key_number(1);
  EXPECT_EQ(store.claim(key, std::chrono::minutes(1), token, {}).status, StoreStatus::unsupported);
  EXPECT_EQ(store.renew(key, token, std::chrono::minutes(1), {}).status, StoreStatus::unsupported);
  EXPECT_EQ(store.release(key, token, ClaimOutcome::stored, {}).status, StoreStatus::unsupported);
}

TYPED_TEST_P(StoreContract, GivesAClaimToOneUntilItIsReleased) {
  auto& store = this->store();
  const EmbeddingKey key = key_number(1);
  ClaimToken mine;
  ClaimToken theirs;
  if (!store.capabilities().can_claim) return expect_no_claims(store);
  const auto second_client = this->harness().open();
  EmbeddingStore& other = second_client ? *second_client : store;
  ASSERT_TRUE(store.claim(key, std::chrono::minutes(1), mine, {}).ok());
  EXPECT_FALSE(mine.value.empty());
  EXPECT_LE(mine.value.size(), 63U);
  EXPECT_EQ(store.claim(key, std::chrono::minutes(1), theirs, {}).status, StoreStatus::conflict);
  EXPECT_EQ(other.claim(key, std::chrono::minutes(1), theirs, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(other.claim(key_number(2), std::chrono::minutes(1), theirs, {}).ok());
  EXPECT_EQ(store.renew(key, theirs, std::chrono::minutes(1), {}).status, StoreStatus::conflict);
  EXPECT_EQ(store.renew(key, {}, std::chrono::minutes(1), {}).status, StoreStatus::conflict);
  EXPECT_EQ(store.release(key, theirs, ClaimOutcome::stored, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(store.renew(key, mine, std::chrono::minutes(1), {}).ok());
  EXPECT_TRUE(store.release(key, mine, ClaimOutcome::stored, {}).ok());
  EXPECT_EQ(store.release(key, mine, ClaimOutcome::stored, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(other.claim(key, std::chrono::minutes(1), theirs, {}).ok());
}

TYPED_TEST_P(StoreContract, LetsAClaimGoWhoseTimeIsOver) {
  auto& store = this->store();
  if (!store.capabilities().can_claim) return expect_no_claims(store);
  const EmbeddingKey key = key_number(1);
  ClaimToken mine;
  ClaimToken theirs;
  ASSERT_TRUE(store.claim(key, std::chrono::milliseconds(1), mine, {}).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!store.claim(key, std::chrono::minutes(1), theirs, {}).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(store.renew(key, mine, std::chrono::minutes(1), {}).status, StoreStatus::conflict);
  EXPECT_EQ(store.release(key, mine, ClaimOutcome::not_stored, {}).status, StoreStatus::conflict);
  EXPECT_TRUE(store.release(key, theirs, ClaimOutcome::not_stored, {}).ok());
}

TYPED_TEST_P(StoreContract, KeepsClaimsApartFromValues) {
  auto& store = this->store();
  if (!store.capabilities().can_claim) return expect_no_claims(store);
  const EmbeddingKey key = key_number(1);
  ClaimToken token;
  ASSERT_TRUE(store.claim(key, std::chrono::minutes(1), token, {}).ok());
  EXPECT_EQ(exists(store, key).status, StoreStatus::absent);
  if (store.capabilities().can_list) {
    std::size_t listed = 0;
    EXPECT_TRUE(store.list({}, [&](const ListedValue&) { return ++listed > 0; }, {}).ok());
    EXPECT_EQ(listed, 0U);
  }
  this->put_ok(key, pattern(1, 300));
  EXPECT_TRUE(store.release(key, token, ClaimOutcome::stored, {}).ok());
  EXPECT_EQ(exists(store, key).size, 300U);
}

TYPED_TEST_P(StoreContract, LetsExactlyOneOfManyWinAClaim) {
  auto& store = this->store();
  if (!store.capabilities().can_claim) return expect_no_claims(store);
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::atomic<int> won{0};
    {
      std::vector<std::jthread> claimants;
      for (int i = 0; i < 4; ++i) {
        claimants.emplace_back([&] {
          ClaimToken token;
          if (store.claim(key_number(round), std::chrono::minutes(1), token, {}).ok()) ++won;
        });
      }
    }
    EXPECT_EQ(won, 1);
  }
}

}  // namespace vitrove::testing
