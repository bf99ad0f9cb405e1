// Helpers that are meant to die would bury the tests' own output.
#include <gtest/gtest.h>

#include "base/log.h"

namespace vitrove::testing {
namespace {

class Quiet final : public ::testing::Environment {
 public:
  void SetUp() override { logger()->set_level(spdlog::level::off); }
};

const auto* const quiet = ::testing::AddGlobalTestEnvironment(new Quiet);

}  // namespace
}  // namespace vitrove::testing
