#include "support/paths.h"

namespace vitrove::test {

std::filesystem::path source_dir() { return VITROVE_SOURCE_DIR; }
std::filesystem::path binary_dir() { return VITROVE_BINARY_DIR; }

}  // namespace vitrove::test
