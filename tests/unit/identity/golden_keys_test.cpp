// Keys written by a second implementation of the documented encoding (make_golden_keys.py). When
// one of these fails, every value that was ever stored would become unreachable: the code is wrong,
// not the file. Field case B25.
#include "support/golden_keys.h"

#include <gtest/gtest.h>

#include "vitrove/model_fingerprint.h"

namespace vitrove::test {
namespace {

using nlohmann::json;

const json& golden() { return golden_keys(); }

std::vector<std::byte> bytes_from(const json& hex) {
  const auto text = hex.get<std::string>();
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(GoldenKeys, Params) {
  ASSERT_GE(golden()["params"].size(), 12U);
  for (const json& entry : golden()["params"]) {
    const std::string encoded = params_from(entry["values"]).canonical();
    EXPECT_EQ(to_hex(std::as_bytes(std::span(encoded))), entry["canonical"].get<std::string>())
        << entry["name"];
  }
}

TEST(GoldenKeys, Keys) {
  ASSERT_GE(golden()["keys"].size(), 17U);
  for (const json& entry : golden()["keys"]) {
    EXPECT_EQ(make_key(parts_from(entry)).text(), entry["key"].get<std::string>()) << entry["name"];
  }
}

// What each family of sounds makes of its parameters is compared in tests/unit/preprocess.
TEST(GoldenKeys, Sounds) {
  ASSERT_GE(golden()["sounds"].size(), 8U);
  for (const json& entry : golden()["sounds"]) {
    EXPECT_EQ(make_key(parts_from(entry)).text(), entry["key"].get<std::string>()) << entry["name"];
  }
}

TEST(GoldenKeys, Features) {
  ASSERT_GE(golden()["features"].size(), 5U);
  for (const json& entry : golden()["features"]) {
    std::vector<std::vector<std::byte>> contents;
    for (const json& tensor : entry["tensors"]) contents.push_back(bytes_from(tensor["bytes"]));
    std::vector<FeatureTensor> tensors;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const json& tensor = entry["tensors"][i];
      tensors.push_back({tensor["name"], tensor["dtype"], tensor["shape"], contents[i]});
    }
    EXPECT_EQ(to_hex(feature_digest(tensors, bytes_from(entry["side_data"]))),
              entry["digest"].get<std::string>())
        << entry["name"];
  }
}

TEST(GoldenKeys, Tenants) {
  ASSERT_GE(golden()["tenants"].size(), 3U);
  for (const json& entry : golden()["tenants"]) {
    EXPECT_EQ(to_hex(tenant_digest(entry["tenant"].get<std::string>())),
              entry["digest"].get<std::string>())
        << entry["name"];
  }
}

TEST(GoldenKeys, Fingerprints) {
  ASSERT_GE(golden()["fingerprints"].size(), 2U);
  for (const json& entry : golden()["fingerprints"]) {
    FingerprintParts parts;
    for (const auto& [role, digest] : entry["files"].items()) {
      parts.files[role] = digest_from(digest);
    }
    parts.settings = entry["settings"].get<std::map<std::string, std::string>>();
    EXPECT_EQ(to_hex(model_fingerprint(parts)), entry["digest"].get<std::string>())
        << entry["name"];
  }
}

}  // namespace
}  // namespace vitrove::test
