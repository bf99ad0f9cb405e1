// The helper protocol: what is written is read, and nothing else is.
#include "stores/mooncake/wire.h"

#include <gtest/gtest.h>

namespace vitrove::mooncake::wire {
namespace {

std::vector<Item> some_items() {
  return {{"vt1-a", {{0, 0, 256}, {1, 1ULL << 40, 7}}},
          {"b", {}},
          {std::string(max_key_bytes, 'k'), {}}};
}

TEST(Wire, ReadsWhatItWrote) {
  const auto header = decode_header(encode(Header{Type::get, 1ULL << 63 | 5, max_payload_bytes}));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->type, Type::get);
  EXPECT_EQ(header->call, 1ULL << 63 | 5);
  EXPECT_EQ(header->payload_bytes, max_payload_bytes);

  EXPECT_EQ(decode_items(encode(some_items())), some_items());
  const std::vector<Answer> answers = {{-800, 5}, {1, 1ULL << 50}};
  EXPECT_EQ(decode_answers(encode(answers)), answers);
  EXPECT_EQ(decode_region(encode(Region{1, 4096})), (Region{1, 4096}));
  EXPECT_EQ(decode_items(encode(std::span<const Item>())), std::vector<Item>());
}

TEST(Wire, RefusesEveryCutAndEveryAddition) {
  const Payload items = encode(some_items());
  const Payload answers = encode(std::vector<Answer>{{1, 2}, {3, 4}});
  const Payload region = encode(Region{1, 4096});
  for (std::size_t size = 0; size < items.size(); ++size) {
    EXPECT_FALSE(decode_items(std::span(items).first(size))) << size;
  }
  for (std::size_t size = 0; size < answers.size(); ++size) {
    EXPECT_FALSE(decode_answers(std::span(answers).first(size))) << size;
  }
  for (std::size_t size = 0; size < region.size(); ++size) {
    EXPECT_FALSE(decode_region(std::span(region).first(size))) << size;
  }
  for (Payload longer : {items, answers, region}) {
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_items(longer));
    EXPECT_FALSE(decode_answers(longer));
    EXPECT_FALSE(decode_region(longer));
  }
}

TEST(Wire, RefusesAHeaderThatDiffersInAnythingFixed) {
  const auto good = encode(Header{Type::put, 1, 10});
  for (const std::size_t at : {0u, 3u, 4u, 5u, 7u}) {  // magic, version, type
    auto bad = good;
    bad[at] ^= std::byte{0x40};
    EXPECT_FALSE(decode_header(bad)) << at;
  }
  EXPECT_FALSE(decode_header(encode(Header{static_cast<Type>(0), 1, 0})));
  EXPECT_FALSE(decode_header(encode(Header{static_cast<Type>(8), 1, 0})));
  EXPECT_FALSE(decode_header(encode(Header{static_cast<Type>(19), 1, 0})));
  EXPECT_FALSE(decode_header(encode(Header{Type::put, 1, max_payload_bytes + 1})));
}

TEST(Wire, RefusesNumbersBeyondItsLimits) {
  EXPECT_FALSE(decode_items(encode(std::vector<Item>{{"", {}}})));
  EXPECT_FALSE(decode_items(encode(std::vector<Item>{{std::string(max_key_bytes + 1, 'k'), {}}})));
  EXPECT_FALSE(decode_items(encode(std::vector<Item>(max_items + 1, Item{"k", {}}))));
  EXPECT_FALSE(decode_answers(encode(std::vector<Answer>(max_items + 1))));
  EXPECT_FALSE(decode_region(encode(Region{1, 0})));
  Payload huge = encode(std::vector<Answer>(1));
  huge[3] = std::byte{0xFF};  // four billion answers in twenty bytes
  EXPECT_FALSE(decode_answers(huge));
  EXPECT_FALSE(decode_items(huge));
}

TEST(Wire, KnowsWhatLiesInsideARegion) {
  constexpr std::uint64_t size = 4096;
  EXPECT_TRUE(is_inside({0, 0, size}, size));
  EXPECT_TRUE(is_inside({0, size - 1, 1}, size));
  EXPECT_FALSE(is_inside({0, size, 1}, size));
  EXPECT_FALSE(is_inside({0, 0, size + 1}, size));
  EXPECT_FALSE(is_inside({0, 5, 0}, size));
  EXPECT_FALSE(is_inside({0, ~std::uint64_t{0}, 2}, size)) << "a sum that wraps around";
  EXPECT_FALSE(is_inside({0, 2, ~std::uint64_t{0}}, size));
}

}  // namespace
}  // namespace vitrove::mooncake::wire
