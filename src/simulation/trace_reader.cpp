#include "simulation/trace_reader.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrove/error.h"

namespace vitrove::simulation {
namespace {

struct Line {
  double timestamp = 0;
  std::vector<std::uint64_t> ids;
};

Line parse(const std::string& text, std::size_t number) {
  try {
    const auto json = nlohmann::json::parse(text);
    return {json.at("timestamp").get<double>(),
            json.at("hash_ids").get<std::vector<std::uint64_t>>()};
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::invalid_argument,
                "line " + std::to_string(number) +
                    R"( of the trace is not {"timestamp": ms, "hash_ids": [id, ...]})");
  }
}

}  // namespace

Trace read_trace(std::istream& lines, const MediaModel& model) {
  std::vector<Line> parsed;
  std::size_t number = 0;
  for (std::string text; std::getline(lines, text);) {
    ++number;
    if (text.find_first_not_of(" \t\r") != std::string::npos) {
      parsed.push_back(parse(text, number));
    }
  }
  std::ranges::stable_sort(parsed, {}, &Line::timestamp);
  Trace trace;
  for (const Line& line : parsed) {
    for (const std::uint64_t id : line.ids) trace.push_back(model.item(id));
  }
  if (trace.empty()) throw Error(ErrorCode::invalid_argument, "the trace is empty");
  return trace;
}

Trace read_trace_file(const std::string& path, const MediaModel& model) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::invalid_argument, "the trace " + path + " cannot be read");
  return read_trace(file, model);
}

}  // namespace vitrove::simulation
