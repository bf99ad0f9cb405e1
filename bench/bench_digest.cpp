// The content digest of media bytes, beside `openssl speed -evp sha256` on the same block sizes.
//
// Both hash one buffer again and again on one thread for about half a second a turn. What `openssl`
// reports (`+R` lines: blocks done in a time) is turned into GB/s with the user time it counted,
// and ours is likewise divided by the thread's CPU time, so that other programs of the machine
// disturb neither.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.h"
#include "vitrove/digest.h"

namespace {

using vitrove::bench::Harness;
using vitrove::bench::keep;
using vitrove::bench::ratio_at_least;

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double ours(const std::vector<std::byte>& buffer) {
  constexpr double turn = 0.5;
  std::uint64_t bytes = 0;
  const double start = thread_seconds();
  double spent = 0;
  while (spent < turn) {
    for (std::size_t done = 0; done < (std::size_t{16} << 20); done += buffer.size()) {
      keep(vitrove::sha256(std::span(buffer)));
      bytes += buffer.size();
    }
    spent = thread_seconds() - start;
  }
  return static_cast<double>(bytes) / 1e9 / spent;
}

struct PipeCloser {
  void operator()(std::FILE* pipe) const { ::pclose(pipe); }
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, PipeCloser> pipe(::popen(command.c_str(), "r"));
  if (!pipe) throw std::runtime_error("cannot start openssl");
  std::string text;
  char piece[512];
  while (std::fgets(piece, sizeof piece, pipe.get()) != nullptr) text += piece;
  return text;
}

// "Doing sha256 for 1s on 16384 size blocks: 84210 sha256's in 0.99s"
double openssl(std::size_t block) {
  const std::string text =
      output_of("openssl speed -evp sha256 -seconds 1 -bytes " + std::to_string(block) + " 2>&1");
  static const std::regex done(R"((\d+) sha256\S* in ([0-9.]+)s)");
  std::smatch found;
  if (!std::regex_search(text, found, done)) {
    throw std::runtime_error("cannot read what openssl speed says: " + text);
  }
  return std::stod(found[1]) * static_cast<double>(block) / 1e9 / std::stod(found[2]);
}

void compare(Harness& harness, const char* name, std::size_t block) {
  if (!harness.wants(name)) return;
  const std::vector<std::byte> buffer(block, std::byte{0x5a});
  harness.compare(
      {name, "GB/s", "openssl speed -evp sha256", ratio_at_least(0.95)},
      [&] { return ours(buffer); }, [&] { return openssl(block); });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Harness harness(argc, argv);
    compare(harness, "digest_16kib", std::size_t{16} << 10);
    compare(harness, "digest_1mib", std::size_t{1} << 20);
    return harness.finish();
  } catch (const std::exception& error) {
    std::cerr << "bench_digest: " << error.what() << '\n';
    return 1;
  }
}
