#include <stdexcept>

#include <gtest/gtest.h>

#include "ranks/rank_message.h"
#include "unit/cache/support.h"
#include "vitrove/collectives.h"

namespace vitrove::testing {
namespace {

PlanMessage some_plan() {
  PlanMessage plan;
  plan.req_id = "r";
  plan.items = {picture(1).expectation(), picture(2).expectation(false)};
  plan.mask = {true, false};
  plan.digest = digest_of(plan.items);
  return plan;
}

TEST(RankMessages, APlanComesThroughWhole) {
  const auto plan = some_plan();
  const auto read = PlanMessage::decode(plan.encode());
  EXPECT_EQ(read.req_id, plan.req_id);
  EXPECT_EQ(read.mask, plan.mask);
  EXPECT_EQ(read.digest, plan.digest);
  EXPECT_EQ(digest_of(read.items), plan.digest);
  EXPECT_FALSE(read.items[1].rows);
}

TEST(RankMessages, OtherItemsHaveAnotherDigest) {
  auto plan = some_plan();
  plan.items[0].rows = 1;
  EXPECT_NE(digest_of(plan.items), plan.digest);
}

TEST(RankMessages, ABodyCutShortOrTooLongIsRefused) {
  const std::vector<std::byte> plan = some_plan().encode();
  for (std::size_t size = 0; size < plan.size(); ++size) {
    EXPECT_THROW(PlanMessage::decode(std::span(plan).first(size)), Error) << size;
  }
  auto longer = plan;
  longer.push_back(std::byte{0});
  EXPECT_THROW(PlanMessage::decode(longer), Error);
  const auto outcome = OutcomeMessage{true, {true, false}}.encode();
  EXPECT_EQ(OutcomeMessage::decode(outcome).hits, (std::vector<bool>{true, false}));
  for (std::size_t size = 0; size < outcome.size(); ++size) {
    EXPECT_THROW(OutcomeMessage::decode(std::span(outcome).first(size)), Error) << size;
  }
}

TEST(RankMessages, AHeaderThatIsNotOursIsRefused) {
  MessageHeader header;
  header.kind = MessageKind::vote;
  header.all_rank_get = true;
  header.number = 7;
  header.sequence = 3;
  header.body_bytes = 5;
  const auto bytes = encode_message_header(header);
  const auto read = decode_message_header(bytes);
  EXPECT_EQ(read.kind, header.kind);
  EXPECT_TRUE(read.all_rank_get);
  EXPECT_EQ(read.number, 7U);
  EXPECT_EQ(read.sequence, 3U);
  EXPECT_EQ(read.body_bytes, 5U);
  for (const std::size_t at : {0U, 4U, 6U, 27U}) {
    auto odd = bytes;
    odd[at] ^= std::byte{0x7F};
    EXPECT_THROW(decode_message_header(odd), Error) << at;
  }
}

TEST(RankCollectives, CallbacksThatAreMissingOrOfNoRankAreRefused) {
  CollectiveCallbacks callbacks;
  EXPECT_THROW(make_callback_collectives(callbacks), Error);
  callbacks.broadcast = [](auto, auto) {};
  callbacks.all_reduce_min = [](auto, auto) {};
  EXPECT_NO_THROW(make_callback_collectives(callbacks));
  callbacks.rank = 1;
  EXPECT_THROW(make_callback_collectives(callbacks), Error);
}

TEST(RankCollectives, WhatAHostThrowsIsAGroupThatFailed) {
  CollectiveCallbacks callbacks;
  callbacks.broadcast = [](auto, auto) { throw 7; };
  callbacks.all_reduce_min = [](auto, auto) { throw std::runtime_error("lost"); };
  callbacks.close = [] { throw 7; };
  const auto collectives = make_callback_collectives(callbacks);
  try {
    collectives->broadcast({}, 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
  try {
    collectives->all_reduce_min({}, 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.detail(), "lost");
  }
  collectives->close();
}

}  // namespace
}  // namespace vitrove::testing
