// vitrove bench: measurements that need no build of the benchmarks.
#include "cli/commands.h"

namespace vitrove::cli {

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "measure: eviction policies on a trace");
  bench->require_subcommand(1);
  add_bench_trace(*bench, exit_code);
}

}  // namespace vitrove::cli
