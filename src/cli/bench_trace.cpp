// vitrove bench trace: what each eviction policy would save on a trace, at several pool sizes, and
// how far that is from what is possible.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/svg_chart.h"
#include "simulation/offline_bounds.h"
#include "simulation/replay.h"
#include "simulation/trace_reader.h"
#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"
#include "vitrove/units.h"

namespace vitrove::cli {
namespace {

using simulation::MediaModel;
using simulation::OfflineBounds;
using simulation::ReplayResult;
using simulation::Trace;
using simulation::TraceTotals;

struct TraceArguments {
  std::string file;
  std::vector<std::string> policies;
  std::vector<std::string> pool_sizes = {"4GiB", "16GiB", "64GiB", "128GiB", "256GiB"};
  std::vector<std::string> shares;
  std::string media = "all";
  std::uint64_t seed = 1;
  std::string plot;
  bool as_json = false;
};

struct PolicyResult {
  std::string policy;
  ReplayResult replay;
};
// At one pool size.
struct Measured {
  std::uint64_t pool_bytes = 0;
  std::vector<PolicyResult> policies;
  OfflineBounds offline;
};

std::string decimals(double value, const char* format = "%.2f") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::vector<Measured> measure(const TraceArguments& arguments, const Trace& trace) {
  std::vector<ModalityShare> shares;
  shares.reserve(arguments.shares.size());
  for (const auto& text : arguments.shares) shares.push_back(parse_modality_share(text));
  std::vector<Measured> all;
  all.reserve(arguments.pool_sizes.size());
  Progress progress(arguments.pool_sizes.size(), arguments.as_json);
  for (const auto& size : arguments.pool_sizes) {
    Measured at;
    at.pool_bytes = parse_bytes(size);
    for (const auto& policy : arguments.policies) {
      at.policies.push_back({policy, simulation::replay(trace, policy, at.pool_bytes, shares)});
    }
    at.offline = simulation::offline_bounds(trace, at.pool_bytes);
    all.push_back(std::move(at));
    progress.step(size);
  }
  std::ranges::sort(all, {}, &Measured::pool_bytes);
  return all;
}

void print_table(const Trace& trace, const TraceTotals& totals, const std::vector<Measured>& all) {
  std::printf("%zu requests for %llu media of %s; encoding all of them anew takes %s\n",
              trace.size(), static_cast<unsigned long long>(totals.media),
              format_bytes(totals.media_bytes).c_str(),
              format_duration(std::chrono::microseconds(static_cast<std::int64_t>(totals.cost_us)))
                  .c_str());
  Table table({"POOL", "POLICY", "HITS %", "BYTES %", "SAVED s", "SAVED %", "OF POSSIBLE %"});
  for (const Measured& at : all) {
    const std::string pool = format_bytes(at.pool_bytes);
    for (const auto& [policy, replay] : at.policies) {
      table.add(
          {pool, policy,
           decimals(percent(static_cast<double>(replay.hits), static_cast<double>(trace.size()))),
           decimals(percent(static_cast<double>(replay.hit_bytes),
                            static_cast<double>(totals.request_bytes))),
           decimals(replay.saved_us / 1e6, "%.0f"),
           decimals(percent(replay.saved_us, totals.cost_us)),
           decimals(percent(replay.saved_us, at.offline.most_us), "%.1f")});
    }
    table.add({pool, "offline", "", "", decimals(at.offline.least_us / 1e6, "%.0f"),
               decimals(percent(at.offline.least_us, totals.cost_us)),
               decimals(percent(at.offline.least_us, at.offline.most_us), "%.1f")});
    table.add({pool, "at most", "", "", decimals(at.offline.most_us / 1e6, "%.0f"),
               decimals(percent(at.offline.most_us, totals.cost_us)), "100.0"});
  }
  table.print();
}

void print_json(const Trace& trace, const TraceTotals& totals, const std::vector<Measured>& all) {
  auto runs = nlohmann::ordered_json::array();
  for (const Measured& at : all) {
    for (const auto& [policy, replay] : at.policies) {
      runs.push_back(
          {{"pool_bytes", at.pool_bytes},
           {"policy", policy},
           {"requests", trace.size()},
           {"media", totals.media},
           {"media_bytes", totals.media_bytes},
           {"hit_ratio", static_cast<double>(replay.hits) / static_cast<double>(trace.size())},
           {"byte_hit_ratio",
            static_cast<double>(replay.hit_bytes) / static_cast<double>(totals.request_bytes)},
           {"evictions", replay.evictions},
           {"encode_seconds", totals.cost_us / 1e6},
           {"saved_seconds", replay.saved_us / 1e6},
           {"offline_seconds", at.offline.least_us / 1e6},
           {"offline_most_seconds", at.offline.most_us / 1e6}});
    }
  }
  std::puts(nlohmann::ordered_json{{"runs", std::move(runs)}}.dump().c_str());
}

void plot(const TraceArguments& arguments, const TraceTotals& totals,
          const std::vector<Measured>& all) {
  Chart chart{"Encode time saved on the trace", "pool size", "of all encode time", {}, {}};
  for (const auto& policy : arguments.policies) chart.lines.push_back({policy, {}});
  chart.lines.push_back({"offline", {}, true});
  chart.lines.push_back({"offline, at most", {}, true});
  for (const Measured& at : all) {
    chart.categories.push_back(format_bytes(at.pool_bytes));
    auto line = chart.lines.begin();
    for (const auto& result : at.policies) {
      (line++)->percent.push_back(percent(result.replay.saved_us, totals.cost_us));
    }
    (line++)->percent.push_back(percent(at.offline.least_us, totals.cost_us));
    line->percent.push_back(percent(at.offline.most_us, totals.cost_us));
  }
  std::ofstream file(arguments.plot);
  file << svg_of(chart) << std::flush;
  if (!file) {
    throw Error(ErrorCode::invalid_argument, arguments.plot + " cannot be written");
  }
}

int bench_trace(TraceArguments arguments) {
  if (arguments.policies.empty()) {
    for (const auto name : eviction_policies()) arguments.policies.emplace_back(name);
  }
  const auto mix = arguments.media == "all" ? MediaModel::Mix::all : MediaModel::Mix::pictures;
  const Trace trace = simulation::read_trace_file(arguments.file, MediaModel(arguments.seed, mix));
  const TraceTotals totals = simulation::totals_of(trace);
  const std::vector<Measured> all = measure(arguments, trace);
  if (arguments.as_json) {
    print_json(trace, totals, all);
  } else {
    print_table(trace, totals, all);
  }
  if (!arguments.plot.empty()) plot(arguments, totals, all);
  return exit_ok;
}

std::string svg_only(const std::string& path) {
  return path.ends_with(".svg") ? "" : "the picture is an SVG: name it FILE.svg";
}

}  // namespace

void add_bench_trace(CLI::App& bench, int& exit_code) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App* command =
      bench.add_subcommand("trace", "replay a trace of requests through the eviction policies");
  command
      ->add_option("FILE", arguments->file,
                   R"(JSON lines: {"timestamp": ms, "hash_ids": [id, ...]}, each id a media item)")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--policy", arguments->policies, "policy, repeatable; default: all of them")
      ->type_name("NAME");
  command->add_option("--pool-size", arguments->pool_sizes, "size of the pool, repeatable")
      ->type_name("BYTES")
      ->capture_default_str();
  command
      ->add_option("--modality-share", arguments->shares,
                   "least and most part of the pool for a modality, repeatable: image=0.2:0.8")
      ->type_name("MODALITY=LEAST:MOST");
  command
      ->add_option("--media", arguments->media,
                   "what the items are: pictures, or all (85 % pictures, 5 % videos, 10 % sounds)")
      ->check(CLI::IsMember({"pictures", "all"}))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the items' sizes and encode costs")
      ->capture_default_str()
      ->check(not_negative);
  command->add_option("--plot", arguments->plot, "also draw encode time saved over pool size")
      ->type_name("FILE.svg")
      ->check(svg_only);
  command->add_flag("--json", arguments->as_json, "one JSON object");
  command->callback([arguments, &exit_code] { exit_code = bench_trace(*arguments); });
}

}  // namespace vitrove::cli
