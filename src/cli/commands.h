// The subcommands, one file each. Every add_* puts its options on the application and a callback
// that runs the command and leaves its exit code in `exit_code`.
//
// Exit codes: see `exit_codes` below.
#pragma once

#include <CLI/CLI.hpp>

namespace vitrove::cli {

enum ExitCode : int {
  exit_ok = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_not_found = 3,
  exit_unreachable = 4,
  exit_partial = 5,
};

inline constexpr const char* exit_codes =
    "Exit codes: 0 done; 1 it failed; 2 wrong usage or a wrong value; 3 no such key; 4 a server "
    "or\n"
    "store could not be reached, was too busy or did not take all, a port is in use, or there is "
    "no\n"
    "memory for the pool, try again; 5 some of the files failed (encode);\n"
    "128+N ended by signal N (130: Ctrl-C, 143: SIGTERM; `serve` drains on these and ends with "
    "0).\n"
    "With --json, standard output is one JSON object; an error is {\"error\": {\"code\", "
    "\"message\"}}.";

void add_serve(CLI::App& app, int& exit_code);
void add_encode(CLI::App& app, int& exit_code);
void add_ls(CLI::App& app, int& exit_code);
void add_stat(CLI::App& app, int& exit_code);
void add_get(CLI::App& app, int& exit_code);
void add_rm(CLI::App& app, int& exit_code);
void add_flush(CLI::App& app, int& exit_code);
void add_stats(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app, int& exit_code);

// Of `bench`.
void add_bench_store(CLI::App& bench, int& exit_code);
void add_bench_trace(CLI::App& bench, int& exit_code);

}  // namespace vitrove::cli
