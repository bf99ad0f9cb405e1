// soak: the cache in foul weather for any length of time. Behind `./run soak`.
#include <cstdio>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "soak/soak.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Mixed hits, misses, aborts, evictions, flushes and store faults, and whether all "
      "promises hold meanwhile");
  double minutes = 0, seconds = 0;
  vitrove::soak::SoakOptions options;
  app.add_option("--minutes", minutes, "how long")->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", seconds, "added to the minutes (default: 60 s in all)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options.threads, "clients")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of what they do")->capture_default_str();
  app.add_option("--policy", options.policy, "eviction policy")->capture_default_str();
  bool is_behind = false;
  app.add_flag("--write-behind", is_behind, "puts wait a while (no claims then)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (is_behind) options.write_policy = vitrove::WritePolicy::behind;
  const auto time = static_cast<long>(minutes * 60 + seconds);
  if (time > 0) options.time = std::chrono::seconds(time);

  try {
    vitrove::logger()->set_level(spdlog::level::off);  // thousands of expected complaints
    return vitrove::soak::Soak(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("soak: FAILED: %s\n", error.what());
    return 1;
  }
}
