// Keys written by a second implementation of the documented encoding (make_golden_keys.py). When
// one of these fails, every value that was ever stored would become unreachable: the code is wrong,
// not the file. Field case B25.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "vitrove/embedding_key.h"
#include "vitrove/model_fingerprint.h"

namespace vitrove {
namespace {

using nlohmann::json;

const json& golden() {
  static const json document = [] {
    std::ifstream file(test::source_dir() / "tests/data/golden_keys.json");
    return json::parse(file);
  }();
  return document;
}

Digest256 digest_from(const json& hex) { return parse_digest(hex.get<std::string>()).value(); }

std::vector<std::byte> bytes_from(const json& hex) {
  const auto text = hex.get<std::string>();
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

double real_from(const json& hex) { return std::strtod(hex.get<std::string>().c_str(), nullptr); }

ParamValue param_from(const json& typed) {
  const auto type = typed["type"].get<std::string>();
  const json& value = typed["value"];
  if (type == "bool") return value.get<bool>();
  if (type == "int") return value.get<std::int64_t>();
  if (type == "real") return real_from(value);
  if (type == "text") return value.get<std::string>();
  std::vector<double> reals;
  for (const json& item : value) reals.push_back(real_from(item));
  return reals;
}

ResolvedParams params_from(const json& values) {
  ResolvedParams params;
  for (const auto& [name, typed] : values.items()) params.values[name] = param_from(typed);
  return params;
}

ContentForm form_from(const std::string& name) {
  if (name == "media_bytes") return ContentForm::media_bytes;
  return name == "features" ? ContentForm::features : ContentForm::host_id;
}

KeyParts parts_from(const json& entry) {
  KeyParts parts;
  parts.form = form_from(entry["form"]);
  parts.content = digest_from(entry["content"]);
  parts.modality = parse_modality(entry["modality"].get<std::string>()).value();
  parts.model_fingerprint = digest_from(entry["model_fingerprint"]);
  for (const json& step : entry["pipeline"]) parts.pipeline.push_back({step[0], step[1]});
  parts.preprocessing = params_from(entry["preprocessing"]);
  parts.dtype = parse_dtype(entry["dtype"].get<std::string>()).value();
  parts.dim = entry["dim"];
  parts.row_meaning = entry["row_meaning"];
  parts.epoch = entry["epoch"];
  parts.tenant = entry["tenant"];
  return parts;
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
}  // namespace vitrove
