// The helper's side of the protocol: it answers nothing but what is asked properly, touches no
// memory outside its regions, and leaves when it is told nonsense or nothing any more.
#include <gtest/gtest.h>
#include <poll.h>

#include "stores/mooncake/child_process.h"
#include "stores/mooncake/helper_command.h"
#include "stores/mooncake/helper_link.h"
#include "stores/mooncake/staging.h"
#include "unit/mooncake/fake_cluster.h"

namespace vitrove::mooncake {
namespace {

using testing::FakeCluster;
using wire::Type;

class HelperProtocol : public ::testing::Test {
 protected:
  void SetUp() override {
    link_.open(child_.socket());
    ASSERT_EQ(next().header.type, Type::started);
  }
  void TearDown() override { link_.close(); }

  // The next frame; one of call 0 and type answer when the helper has gone.
  HelperLink::Frame next() {
    HelperLink::Frame frame;
    for (;;) {
      const auto read = link_.read(frame);
      if (read == HelperLink::Read::frame) return frame;
      if (read != HelperLink::Read::nothing) return {};
      link_.poll(child_.words(), 60'000);
    }
  }
  void set_up() {
    link_.send(Type::map, 1, wire::encode(wire::Region{0, memory_.size()}), memory_.memfd());
    const std::string settings = helper_settings(cluster_.options());
    const auto bytes = std::as_bytes(std::span(settings));
    link_.send(Type::setup, 0, {bytes.begin(), bytes.end()});
    ASSERT_EQ(next().header.call, 1u) << "the region is registered with the set-up";
    ASSERT_EQ(next().header.type, Type::state);
  }
  std::vector<std::int64_t> ask(Type type, const std::vector<wire::Item>& items) {
    link_.send(type, 7, wire::encode(items));
    const auto frame = next();
    EXPECT_EQ(frame.header.call, 7u);
    const auto answers = wire::decode_answers(frame.payload);
    std::vector<std::int64_t> codes;
    for (const wire::Answer& answer : answers.value()) codes.push_back(answer.code);
    return codes;
  }

  FakeCluster cluster_;
  StagingMemory memory_{1 << 20};
  HelperLink link_;
  ChildProcess child_{helper_command(cluster_.options())};
};

TEST_F(HelperProtocol, AsksMooncakeNothingBeforeItsSetUp) {
  EXPECT_EQ(ask(Type::exist, {{"a", {}}, {"b", {}}}), (std::vector<std::int64_t>{-1, -1}));
}

TEST_F(HelperProtocol, RefusesRunsOutsideItsRegionsAndServesTheOthers) {
  set_up();
  const std::uint64_t size = memory_.size();
  const std::vector<wire::Item> items = {{"good", {{0, 0, 100}}},
                                         {"beyond", {{0, size - 50, 100}}},
                                         {"wrapped", {{0, ~std::uint64_t{0}, 100}}},
                                         {"unknown", {{5, 0, 100}}},
                                         {"empty", {{0, 0, 0}}},
                                         {"none", {}},
                                         {"several", {{0, 0, 50}, {0, 50, 50}}},
                                         {"whole", {{0, 0, size}}}};
  EXPECT_EQ(ask(Type::put, items),
            (std::vector<std::int64_t>{0, -600, -600, -600, -600, -600, -600, 0}));
  EXPECT_EQ(ask(Type::exist, {{"good", {}}, {"beyond", {}}}), (std::vector<std::int64_t>{1, 0}));
}

TEST_F(HelperProtocol, ForgetsARegionThatIsTakenBack) {
  set_up();
  link_.send(Type::unmap, 2, wire::encode(wire::Region{0, memory_.size()}));
  EXPECT_EQ(next().header.call, 2u);
  EXPECT_EQ(ask(Type::put, {{"a", {{0, 0, 100}}}}), std::vector<std::int64_t>{-600});
}

TEST_F(HelperProtocol, LeavesAtTheEndOfTheSocket) {
  set_up();
  child_.hang_up();
  EXPECT_EQ(next().header.call, 0u);
  EXPECT_EQ(child_.reap(), "exit code 0");
}

struct NonsenseCase {
  const char* name;
  Type type;
  wire::Payload payload;
};

class HelperNonsense : public HelperProtocol, public ::testing::WithParamInterface<NonsenseCase> {};

TEST_P(HelperNonsense, EndsTheHelper) {
  set_up();
  link_.send(GetParam().type, 9, GetParam().payload);
  EXPECT_EQ(next().header.call, 0u) << "no answer";
  EXPECT_EQ(child_.reap(), "exit code 2");
}

wire::Payload cut_items() {
  auto payload = wire::encode(std::vector<wire::Item>{{"key", {{0, 0, 1}}}});
  payload.pop_back();
  return payload;
}

INSTANTIATE_TEST_SUITE_P(
    All, HelperNonsense,
    ::testing::Values(
        NonsenseCase{"CutItems", Type::put, cut_items()}, NonsenseCase{"NoPayload", Type::get, {}},
        NonsenseCase{"RegionWithoutItsFile", Type::map, wire::encode(wire::Region{1, 5})},
        NonsenseCase{"OurOwnWords", Type::started, wire::encode(std::vector<wire::Item>{})},
        NonsenseCase{"UnknownType", static_cast<Type>(99), {}},
        NonsenseCase{"TooLong", Type::put, wire::Payload(wire::max_payload_bytes + 1)}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace vitrove::mooncake
