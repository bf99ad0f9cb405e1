// vitrove bench: measurements that an operator makes on his own machines.
#include "cli/commands.h"

namespace vitrove::cli {

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "measure a store, or eviction policies on a trace");
  bench->require_subcommand(1);
  add_bench_store(*bench, exit_code);
  add_bench_trace(*bench, exit_code);
}

}  // namespace vitrove::cli
