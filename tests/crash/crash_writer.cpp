// Puts, replaces, reads and removes values of a file store until it is killed; then
// file_store_crash_test.cpp looks at what it left. Usage: crash_writer DIRECTORY CAPACITY SEED
//
// Writes one byte to standard output after each put, so that the test knows it is at work. Exits
// with 3 when a read gives anything but a whole value or a plain miss.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "contract/test_values.h"
#include "vitrove/file_store.h"

namespace {

using namespace vitrove;
using namespace vitrove::testing;

int run(const char* directory, std::uint64_t capacity, unsigned seed) {
  const auto store = make_file_store({.root = directory, .capacity = capacity});
  std::mt19937 random(seed);
  for (;;) {
    const EmbeddingKey key = key_number(random() % 40, "crash");
    const Bytes value = sealed_value(key, 1 + random() % 600, 64 * (1 + random() % 16), random());
    const PutMode mode = random() % 2 == 0 ? PutMode::replace : PutMode::if_absent;
    const StoreResult put = put_one(*store, key, value, mode);
    if (!put.ok() && put.status != StoreStatus::no_space) {
      std::fprintf(stderr, "put: %d errno %d\n", static_cast<int>(put.status), put.error_number);
      return 3;
    }
    const EmbeddingKey other = key_number(random() % 40, "crash");
    const Bytes back = read_back(*store, other);
    if (!back.empty() && inspect(back, other) != Reject::none) return 3;
    if (random() % 8 == 0) remove_one(*store, key);
    if (::write(STDOUT_FILENO, ".", 1) != 1) return 0;
  }
}

}  // namespace

// Writes of this program go slowly, a piece at a time, so that most kills meet a put half done.
extern "C" ssize_t pwritev(int fd, const iovec* vector, int, off_t offset) {
  ::usleep(50);
  return ::syscall(SYS_pwrite64, fd, vector->iov_base,
                   std::min<std::size_t>(vector->iov_len, 65536), offset);
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return run(argv[1], std::strtoull(argv[2], nullptr, 10),
             static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
}
