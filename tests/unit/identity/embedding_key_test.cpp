#include "vitrove/embedding_key.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <locale>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "vitrove/model_fingerprint.h"

namespace vitrove {
namespace {

KeyParts plain_parts() {
  KeyParts parts;
  parts.content = sha256("a picture");
  parts.model_fingerprint = sha256("a model");
  parts.pipeline = {{"jpeg", 1}, {"clip", 1}};
  parts.preprocessing.values = {{"size", std::int64_t{224}}, {"mean", std::vector{0.5, 0.5, 0.5}}};
  parts.dtype = DType::float16;
  parts.dim = 1024;
  parts.row_meaning = "tokens";
  return parts;
}

using Change = std::function<void(KeyParts&)>;

// Field cases B22, B26, B38, B88: whatever can change the rows changes the key.
TEST(EmbeddingKey, EachPartChangesTheKey) {
  const std::vector<Change> changes{
      [](KeyParts&) {},
      [](KeyParts& p) { p.form = ContentForm::features; },
      [](KeyParts& p) { p.form = ContentForm::host_id; },
      [](KeyParts& p) { p.content = sha256("another picture"); },
      [](KeyParts& p) { p.content.bytes[31] ^= std::byte{1}; },
      [](KeyParts& p) { p.modality = Modality::video; },
      [](KeyParts& p) { p.modality = Modality::audio; },
      [](KeyParts& p) { p.model_fingerprint = sha256("another model"); },
      [](KeyParts& p) { p.pipeline[0].version = 2; },
      [](KeyParts& p) { p.pipeline[1].version = 2; },
      [](KeyParts& p) { p.pipeline[0].name = "png"; },
      [](KeyParts& p) { p.pipeline.pop_back(); },
      [](KeyParts& p) {
        p.pipeline.push_back({"resize", 1});
      },
      [](KeyParts& p) { p.preprocessing.values["size"] = std::int64_t{225}; },
      [](KeyParts& p) { p.preprocessing.values["size"] = 224.0; },
      [](KeyParts& p) { p.preprocessing.values["fps"] = 1.0; },
      [](KeyParts& p) { p.preprocessing.values.erase("mean"); },
      [](KeyParts& p) { p.dtype = DType::float32; },
      [](KeyParts& p) { p.dtype = DType::bfloat16; },
      [](KeyParts& p) { p.dim = 768; },
      [](KeyParts& p) { p.row_meaning = "packed"; },
      [](KeyParts& p) { p.epoch = 1; },
      [](KeyParts& p) { p.tenant = "acme"; },
      [](KeyParts& p) { p.tenant = "acm"; },
  };
  std::set<EmbeddingKey> keys;
  for (const Change& change : changes) {
    KeyParts parts = plain_parts();
    change(parts);
    keys.insert(make_key(parts));
  }
  EXPECT_EQ(keys.size(), changes.size());
}

TEST(EmbeddingKey, PartsThatTouchCannotTradeBytes) {
  std::set<EmbeddingKey> keys;
  KeyParts parts = plain_parts();
  for (auto [meaning, tenant] : {std::pair{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}}) {
    parts.row_meaning = meaning;
    parts.tenant = tenant;
    keys.insert(make_key(parts));
  }
  parts = plain_parts();
  parts.pipeline = {{"ab", 1}, {"c", 1}};
  keys.insert(make_key(parts));
  parts.pipeline = {{"a", 1}, {"bc", 1}};
  keys.insert(make_key(parts));
  parts.pipeline = {{"abc", 1}};
  keys.insert(make_key(parts));
  EXPECT_EQ(keys.size(), 7U);
}

TEST(EmbeddingKey, ThePipelineIsASet) {
  KeyParts other = plain_parts();
  std::reverse(other.pipeline.begin(), other.pipeline.end());
  EXPECT_EQ(make_key(other), make_key(plain_parts()));
  other.pipeline.push_back(other.pipeline.front());
  EXPECT_EQ(make_key(other), make_key(plain_parts()));
}

// Field case B25: other number formats of the process change nothing.
TEST(EmbeddingKey, DoesNotDependOnTheLocale) {
  struct Odd : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\1"; }
  };
  const EmbeddingKey before = make_key(plain_parts());
  const std::locale old = std::locale::global(std::locale(std::locale(), new Odd));
  const EmbeddingKey during = make_key(plain_parts());
  std::locale::global(old);
  EXPECT_EQ(before, during);
}

TEST(EmbeddingKey, HasOneTextForm) {
  const EmbeddingKey key = make_key(plain_parts());
  const std::string text = key.text();
  EXPECT_EQ(text.size(), 68U);
  EXPECT_TRUE(text.starts_with("vt1-"));
  EXPECT_EQ(EmbeddingKey::parse(text), key);
}

TEST(EmbeddingKey, RefusesEveryOtherText) {
  const std::string text = make_key(plain_parts()).text();
  std::string upper = text;
  std::transform(upper.begin() + 4, upper.end(), upper.begin() + 4,
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const std::string& bad :
       {std::string(), std::string("vt1-"), text.substr(4), text.substr(0, 67), text + "0", upper,
        "VT1-" + text.substr(4), "vt2-" + text.substr(4), "vt1_" + text.substr(4), " " + text,
        text + "\n", text + std::string(1, '\0'), std::string("vt1-../../../../etc/passwd"),
        "vt1-" + std::string(5'000'000, 'a'), "vt1-" + std::string(63, 'a') + "*",
        "vt1-" + std::string(62, 'a') + "\r\n"}) {
    EXPECT_FALSE(EmbeddingKey::parse(bad)) << bad.substr(0, 100);
  }
}

// Field case B19: keys are whole digests, so a million items make a million keys.
TEST(EmbeddingKey, AMillionItemsMakeAMillionKeys) {
  constexpr std::size_t items = 1'000'000;
  std::mt19937_64 random(1);
  KeyParts parts;
  parts.dim = 64;
  std::vector<EmbeddingKey> keys(items);
  for (EmbeddingKey& key : keys) {
    const std::uint64_t word = random();
    std::memcpy(parts.content.bytes.data(), &word, sizeof word);
    key = make_key(parts);
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

// Field case B17: identity is of the file's bytes, so a palette cannot be overlooked.
TEST(EmbeddingKey, FilesThatShareAnIndexPlaneButNotThePaletteDiffer) {
  const std::string plane(64, '\1');
  KeyParts red = plain_parts();
  red.content = sha256("PLTE\xff\x00\x00" + plane);
  KeyParts blue = plain_parts();
  blue.content = sha256(std::string("PLTE\x00\x00\xff", 7) + plane);
  EXPECT_NE(make_key(red), make_key(blue));
}

FeatureTensor tensor(std::string name, std::string dtype, std::vector<std::int64_t> shape,
                     std::string_view bytes) {
  return {std::move(name), std::move(dtype), std::move(shape), std::as_bytes(std::span(bytes))};
}

Digest256 digest_of(std::vector<FeatureTensor> tensors, std::string_view side = "") {
  return feature_digest(tensors, std::as_bytes(std::span(side)));
}

// Field cases B16, B18, B21: shape, dtype, partition, order, names and absence all count.
TEST(FeatureDigest, TensorsThatDifferInAnythingDiffer) {
  const std::string all(4500, '\x11');
  const std::string_view bytes(all);
  const std::vector<Digest256> digests{
      digest_of({}),
      digest_of({}, "side"),
      digest_of({tensor("x", "uint8", {30, 150}, bytes)}),
      digest_of({tensor("x", "uint8", {150, 30}, bytes)}),
      digest_of({tensor("x", "uint8", {4500}, bytes)}),
      digest_of({tensor("x", "uint8", {1, 4500}, bytes)}),
      digest_of({tensor("x", "uint8", {30, 50, 3}, bytes)}),
      digest_of({tensor("x", "int8", {30, 150}, bytes)}),
      digest_of({tensor("y", "uint8", {30, 150}, bytes)}),
      digest_of({tensor("x", "uint8", {30, 150}, bytes)}, "side"),
      digest_of({tensor("x", "int32", {2}, bytes.substr(0, 8))}),
      digest_of({tensor("x", "float32", {2}, bytes.substr(0, 8))}),
      digest_of({tensor("x", "int64", {}, bytes.substr(0, 8))}),
      digest_of({tensor("x", "int64", {1}, bytes.substr(0, 8))}),
      digest_of({tensor("x", "int64", {0}, "")}),
      // One list of five, cut in two places.
      digest_of({tensor("x", "uint8", {2}, bytes.substr(0, 2)),
                 tensor("x", "uint8", {3}, bytes.substr(2, 3))}),
      digest_of({tensor("x", "uint8", {3}, bytes.substr(0, 3)),
                 tensor("x", "uint8", {2}, bytes.substr(3, 2))}),
      digest_of({tensor("x", "uint8", {5}, bytes.substr(0, 5))}),
      // Order.
      digest_of({tensor("a", "uint8", {1}, "A"), tensor("b", "uint8", {1}, "B")}),
      digest_of({tensor("b", "uint8", {1}, "B"), tensor("a", "uint8", {1}, "A")}),
      digest_of({tensor("a", "uint8", {1}, "B"), tensor("b", "uint8", {1}, "A")}),
      // Absence.
      digest_of({tensor("a", "uint8", {1}, "A")}),
      digest_of({tensor("b", "uint8", {1}, "B")}),
      digest_of({tensor("a", "uint8", {1}, "A")}, "B"),
  };
  EXPECT_EQ(std::set<Digest256>(digests.begin(), digests.end()).size(), digests.size());
}

TEST(FeatureDigest, IsTheSameForEqualTensors) {
  const std::string bytes(24, '\2');
  const std::string copy = bytes;
  EXPECT_EQ(digest_of({tensor("x", "float32", {2, 3}, bytes)}),
            digest_of({tensor("x", "float32", {2, 3}, copy)}));
}

TEST(TenantDigest, SeparatesTenantsAndIsZeroForNone) {
  EXPECT_EQ(tenant_digest(""), Digest256{});
  EXPECT_NE(tenant_digest("a"), Digest256{});
  EXPECT_NE(tenant_digest("a"), tenant_digest("b"));
  EXPECT_NE(tenant_digest("a"), sha256("a"));
  EXPECT_EQ(tenant_digest("a"), tenant_digest("a"));
}

}  // namespace
}  // namespace vitrove
