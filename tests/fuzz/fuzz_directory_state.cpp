// The state file stands in a directory that others can write to: any bytes either parse into a
// state that writes itself the same again, or are refused.
#include <cstdlib>
#include <string>
#include <string_view>

#include "stores/file/directory_state.h"
#include "vitrove/digest.h"

namespace {

using namespace vitrove::file;

void check(std::string_view text) {
  static const ProcessIdentity self = make_identity();
  const auto state = parse_state(text);
  if (!state) return;
  if (parse_state(to_text(*state)) != state) std::abort();
  DirectoryState changed = *state;
  changed.sign_in(self, 1, wall_clock_ms());
  if (changed.capacity() > 1 || changed.room() > 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  // With the checksum that it lacks, so that the lines are parsed as well.
  check(text + "end " + vitrove::to_hex(vitrove::sha256(text)).substr(0, 16) + '\n');
  return 0;
}
