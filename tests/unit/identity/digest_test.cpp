#include "vitrove/digest.h"

#include <thread>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

constexpr auto abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr auto nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Digest, GivesTheValuesOfTheStandard) {
  EXPECT_EQ(to_hex(sha256("abc")), abc);
  EXPECT_EQ(to_hex(sha256("")), nothing);
  EXPECT_EQ(to_hex(sha256(std::span<const std::byte>())), nothing);
  EXPECT_EQ(to_hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Digest, OfPiecesIsTheDigestOfTheWhole) {
  const std::string text(100'000, 'x');
  Sha256 hash;
  for (std::size_t at = 0, length = 1; at < text.size(); at += length, length = length * 2 + 1) {
    hash.update(bytes_of(std::string_view(text).substr(at, length)));
  }
  EXPECT_EQ(hash.finish(), sha256(text));
}

TEST(Digest, FinishStartsANewMessage) {
  Sha256 hash;
  hash.update(bytes_of("something else"));
  hash.finish();
  EXPECT_EQ(to_hex(hash.finish()), nothing);
  hash.update(bytes_of("abc"));
  EXPECT_EQ(to_hex(hash.finish()), abc);
}

TEST(Digest, AnUnfinishedMessageMoves) {
  Sha256 first;
  first.update(bytes_of("ab"));
  Sha256 second = std::move(first);
  second.update(bytes_of("c"));
  EXPECT_EQ(to_hex(second.finish()), abc);
}

TEST(Digest, ThreadsDoNotDisturbEachOther) {
  std::vector<Digest256> results(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < results.size(); ++t) {
      threads.emplace_back([&result = results[t]] {
        for (int i = 0; i < 1000; ++i) result = sha256("abc");
      });
    }
  }
  for (const Digest256& result : results) EXPECT_EQ(to_hex(result), abc);
}

TEST(ParseDigest, ReadsEitherCase) {
  EXPECT_EQ(parse_digest(abc), sha256("abc"));
  std::string upper(abc);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(parse_digest(upper), sha256("abc"));
}

TEST(ParseDigest, RefusesEverythingElse) {
  const std::string good(abc);
  EXPECT_FALSE(parse_digest(""));
  EXPECT_FALSE(parse_digest(good.substr(1)));
  EXPECT_FALSE(parse_digest(good + "0"));
  EXPECT_FALSE(parse_digest(std::string(5'000'000, 'a')));
  for (const char bad : {'g', 'G', ' ', '/', ':', '@', '`', '\0', '\xff', '.'}) {
    for (const std::size_t at : {0, 1, 63}) {
      std::string text = good;
      text[at] = bad;
      EXPECT_FALSE(parse_digest(text)) << text;
    }
  }
}

TEST(Digest, HashesAndComparesAsAValue) {
  const std::unordered_set<Digest256> set{sha256("a"), sha256("b"), sha256("a")};
  EXPECT_EQ(set.size(), 2U);
  Digest256 low;
  Digest256 high;
  high.bytes[0] = std::byte{0x80};
  EXPECT_LT(low, high);
}

TEST(ToHex, WritesTwoLowerCaseDigitsAByte) {
  const std::array bytes{std::byte{0x00}, std::byte{0x0f}, std::byte{0xAB}};
  EXPECT_EQ(to_hex(bytes), "000fab");
  EXPECT_EQ(to_hex(std::span<const std::byte>()), "");
}

}  // namespace
}  // namespace vitrove
