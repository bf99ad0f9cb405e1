// Expected complaints would bury the tests' own output; for the programs that provoke many.
#include <gtest/gtest.h>

#include "base/log.h"

namespace vitrove::test {
namespace {

class Quiet final : public ::testing::Environment {
 public:
  void SetUp() override { logger()->set_level(spdlog::level::off); }
};

const auto* const quiet = ::testing::AddGlobalTestEnvironment(new Quiet);

}  // namespace
}  // namespace vitrove::test
