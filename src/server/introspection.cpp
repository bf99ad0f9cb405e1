#include "server/introspection.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vitrove {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t top_keys = 20;
constexpr std::array<std::pair<const char*, std::chrono::minutes>, 3> windows = {
    {{"1m", std::chrono::minutes(1)},
     {"10m", std::chrono::minutes(10)},
     {"60m", std::chrono::minutes(60)}}};

json ratio_json(const HitCounts& counts) {
  const auto ratio = counts.ratio();
  return ratio ? json(*ratio) : json(nullptr);
}

double seconds(std::uint64_t microseconds) { return static_cast<double>(microseconds) / 1e6; }

json lookups_json(const ModelLookups& line) {
  return {{"local", line.lookups.local},
          {"joined", line.lookups.joined},
          {"store", line.lookups.store},
          {"miss", line.lookups.miss}};
}

json entries_json(const ModelEntries& held) {
  const double entries = static_cast<double>(std::max<std::uint64_t>(held.entries, 1));
  return {{"entries", held.entries},
          {"bytes", held.bytes},
          {"waste_bytes", held.bytes - held.payload_bytes},
          {"runs_per_entry", static_cast<double>(held.runs) / entries},
          {"mean_age_seconds", held.mean_age.count()},
          {"oldest_age_seconds", held.oldest_age.count()}};
}

// One line of the reply; the parts come from different sources.
struct Line {
  Modality modality;
  std::optional<Digest256> model;
  ModelLookups lookups;
  std::vector<HitCounts> recent;  // by window
  ModelEntries held;
};

json line_json(const Line& line) {
  json ratios = json::object();
  for (std::size_t i = 0; i < windows.size(); ++i) {
    ratios[windows[i].first] = ratio_json(i < line.recent.size() ? line.recent[i] : HitCounts{});
  }
  json out = {{"modality", to_string(line.modality)},
              {"model", line.model ? json(to_hex(*line.model)) : json(nullptr)},
              {"lookups", lookups_json(line.lookups)},
              {"hit_ratio", std::move(ratios)},
              {"saved_seconds", seconds(line.lookups.saved_us)}};
  out.update(entries_json(line.held));
  return out;
}

std::vector<Line> lookup_lines(const EmbeddingCacheController& controller,
                               const HitHistory& history) {
  const std::vector<ModelLookups> all = controller.model_lookups();
  const auto now = HitHistory::Clock::now();
  std::vector<std::vector<HitCounts>> recent;
  recent.reserve(windows.size());
  for (const auto& [name, window] : windows) recent.push_back(history.since(now, window, all));
  std::vector<Line> lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].model && hit_counts(all[i].lookups).lookups == 0) continue;
    Line line{all[i].modality, all[i].model, all[i], {}, {}};
    for (const auto& counts : recent) line.recent.push_back(counts[i]);
    lines.push_back(std::move(line));
  }
  return lines;
}

void add_held(std::vector<Line>& lines, const ModelEntries& held) {
  for (Line& line : lines) {
    if (line.modality != held.modality || line.model != held.model) continue;
    line.held = held;
    return;
  }
  lines.push_back({held.modality, held.model, {}, {}, held});
}

}  // namespace

json hit_ratios_json(const EmbeddingCacheController& controller, const HitHistory& history) {
  const std::vector<ModelLookups> all = controller.model_lookups();
  const auto now = HitHistory::Clock::now();
  json ratios = json::object();
  for (const auto& [name, window] : windows) {
    HitCounts sum;
    for (const HitCounts& counts : history.since(now, window, all)) sum += counts;
    ratios[name] = ratio_json(sum);
  }
  return ratios;
}

json contents_json(const EmbeddingCacheController& controller, const HitHistory& history) {
  const PoolReport report = controller.inspect(top_keys);
  std::vector<Line> lines = lookup_lines(controller, history);
  for (const ModelEntries& held : report.models) add_held(lines, held);
  json models = json::array();
  for (const Line& line : lines) models.push_back(line_json(line));
  json keys = json::array();
  for (const ValuedKey& valued : report.most_valued) {
    keys.push_back({{"key", valued.key.text()},
                    {"modality", to_string(valued.modality)},
                    {"model", to_hex(valued.model)},
                    {"hits", valued.hits},
                    {"saved_seconds", seconds(valued.saved_us)}});
  }
  return {{"models", std::move(models)}, {"top_keys", std::move(keys)}};
}

}  // namespace vitrove
