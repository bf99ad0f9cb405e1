// What tests/data/golden_keys.json holds, in our own types.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "vitrove/embedding_key.h"

namespace vitrove::test {

inline const nlohmann::json& golden_keys() {
  static const nlohmann::json document = [] {
    std::ifstream file(source_dir() / "tests/data/golden_keys.json");
    return nlohmann::json::parse(file);
  }();
  return document;
}

inline Digest256 digest_from(const nlohmann::json& hex) {
  return parse_digest(hex.get<std::string>()).value();
}

inline double real_from(const nlohmann::json& hex) {
  return std::strtod(hex.get<std::string>().c_str(), nullptr);
}

inline ParamValue param_from(const nlohmann::json& typed) {
  const auto type = typed["type"].get<std::string>();
  const nlohmann::json& value = typed["value"];
  if (type == "bool") return value.get<bool>();
  if (type == "int") return value.get<std::int64_t>();
  if (type == "real") return real_from(value);
  if (type == "text") return value.get<std::string>();
  std::vector<double> reals;
  for (const nlohmann::json& item : value) reals.push_back(real_from(item));
  return reals;
}

inline ResolvedParams params_from(const nlohmann::json& values) {
  ResolvedParams params;
  for (const auto& [name, typed] : values.items()) params.values[name] = param_from(typed);
  return params;
}

inline ContentForm form_from(const std::string& name) {
  if (name == "media_bytes") return ContentForm::media_bytes;
  return name == "features" ? ContentForm::features : ContentForm::host_id;
}

inline KeyParts parts_from(const nlohmann::json& entry) {
  KeyParts parts;
  parts.form = form_from(entry["form"]);
  parts.content = digest_from(entry["content"]);
  parts.modality = parse_modality(entry["modality"].get<std::string>()).value();
  parts.model_fingerprint = digest_from(entry["model_fingerprint"]);
  for (const nlohmann::json& step : entry["pipeline"]) {
    parts.pipeline.push_back({step[0], step[1]});
  }
  parts.preprocessing = params_from(entry["preprocessing"]);
  parts.dtype = parse_dtype(entry["dtype"].get<std::string>()).value();
  parts.dim = entry["dim"];
  parts.row_meaning = entry["row_meaning"];
  parts.epoch = entry["epoch"];
  parts.tenant = entry["tenant"];
  return parts;
}

}  // namespace vitrove::test
