// The helpers' side of the protocol, that of the library and that of the wheel: it answers nothing
// but what is asked properly, touches no memory outside its regions, and leaves when it is told
// nonsense or nothing any more.
#include <fstream>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "stores/mooncake/child_process.h"
#include "stores/mooncake/helper_command.h"
#include "stores/mooncake/helper_link.h"
#include "stores/mooncake/staging.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"

namespace vitrove::mooncake {
namespace {

using testing::FakeCluster;
using wire::Type;

enum class Provider { library, wheel };

// The wheel's is tests/mooncake/python.
Command command_of(Provider provider, MooncakeStoreOptions options) {
  if (provider == Provider::library) return helper_command(options);
  options.library.clear();
  options.python = "python3";
  Command command = helper_command(options);
  std::erase_if(command.environment,
                [](const std::string& setting) { return setting.starts_with("PYTHON"); });
  const auto package = test::source_dir() / "tests" / "mooncake" / "python";
  command.environment.push_back("PYTHONPATH=" + package.string());
  command.environment.push_back("PYTHONDONTWRITEBYTECODE=1");
  return command;
}

class HelperConversation : public ::testing::Test {
 protected:
  explicit HelperConversation(Provider provider) : provider_(provider) {}
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
  void set_up() { set_up(cluster_.options()); }
  void set_up(const MooncakeStoreOptions& options) {
    link_.send(Type::map, 1, wire::encode(wire::Region{0, memory_.size()}), memory_.memfd());
    const std::string settings = helper_settings(options);
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

  // What Mooncake was told; empty when it was told nothing.
  std::string fact(const std::string& name) const {
    return testing::text_of(cluster_.directory() / name);
  }

  const Provider provider_;
  FakeCluster cluster_;
  StagingMemory memory_{1 << 20};
  HelperLink link_;
  ChildProcess child_{command_of(provider_, cluster_.options())};
};

class HelperProtocol : public HelperConversation, public ::testing::WithParamInterface<Provider> {
 protected:
  HelperProtocol() : HelperConversation(GetParam()) {}
};

std::string name_of(Provider provider) {
  return provider == Provider::library ? "Library" : "Wheel";
}
INSTANTIATE_TEST_SUITE_P(Both, HelperProtocol,
                         ::testing::Values(Provider::library, Provider::wheel),
                         [](const auto& one) { return name_of(one.param); });

TEST_P(HelperProtocol, AsksMooncakeNothingBeforeItsSetUp) {
  EXPECT_EQ(ask(Type::exist, {{"a", {}}, {"b", {}}}), (std::vector<std::int64_t>{-1, -1}));
}

TEST_P(HelperProtocol, RefusesRunsOutsideItsRegionsAndServesTheOthers) {
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
  const std::int64_t several = provider_ == Provider::wheel ? 0 : -600;  // the library takes one
  EXPECT_EQ(ask(Type::put, items),
            (std::vector<std::int64_t>{0, -600, -600, -600, -600, -600, several, 0}));
  EXPECT_EQ(ask(Type::exist, {{"good", {}}, {"beyond", {}}}), (std::vector<std::int64_t>{1, 0}));
}

TEST_P(HelperProtocol, ForgetsARegionThatIsTakenBack) {
  set_up();
  link_.send(Type::unmap, 2, wire::encode(wire::Region{0, memory_.size()}));
  EXPECT_EQ(next().header.call, 2u);
  EXPECT_EQ(ask(Type::put, {{"a", {{0, 0, 100}}}}), std::vector<std::int64_t>{-600});
}

TEST_P(HelperProtocol, PutsWithAsManyReplicasAndAsSoftlyPinnedAsItIsTold) {
  auto options = cluster_.options();
  options.replicas = 3;
  options.soft_pin = true;
  set_up(options);
  ASSERT_EQ(ask(Type::put, {{"a", {{0, 0, 100}}}}), std::vector<std::int64_t>{0});
  EXPECT_EQ(fact("config"), "replicas 3 soft 1 hard 0 preferred 0");
}

TEST_P(HelperProtocol, PinsHardAsItIsTold) {
  auto options = cluster_.options();
  options.hard_pin = true;
  set_up(options);
  ASSERT_EQ(ask(Type::put, {{"a", {{0, 0, 100}}}}), std::vector<std::int64_t>{0});
  EXPECT_EQ(fact("config"), "replicas 1 soft 0 hard 1 preferred 0");
}

TEST_P(HelperProtocol, PinsNothingThatItIsNotTold) {
  set_up();
  ASSERT_EQ(ask(Type::put, {{"a", {{0, 0, 100}}}}), std::vector<std::int64_t>{0});
  EXPECT_EQ(fact("config"), "replicas 1 soft 0 hard 0 preferred 0");
}

TEST_P(HelperProtocol, LendsWhatItIsToldAndTakesItBackWhenItLeaves) {
  auto options = cluster_.options();
  options.segment_bytes = 300 << 20;
  set_up(options);
  EXPECT_EQ(fact("segment"), std::to_string(300 << 20));
  child_.hang_up();
  EXPECT_EQ(next().header.call, 0u);
  EXPECT_EQ(child_.reap(), "exit code 0");
  EXPECT_EQ(fact("left"), "0") << "regions that were still registered";
}

TEST_P(HelperProtocol, WaitsForNoFarewellWhenItLendsNothing) {
  set_up();
  EXPECT_EQ(fact("segment"), "0");
  child_.hang_up();
  EXPECT_EQ(next().header.call, 0u);
  EXPECT_EQ(child_.reap(), "exit code 0");
  EXPECT_EQ(fact("left"), "");
}

TEST_P(HelperProtocol, LeavesAtTheEndOfTheSocket) {
  set_up();
  child_.hang_up();
  EXPECT_EQ(next().header.call, 0u);
  EXPECT_EQ(child_.reap(), "exit code 0");
}

class WheelProtocol : public HelperConversation {
 protected:
  WheelProtocol() : HelperConversation(Provider::wheel) {}
};

TEST_F(WheelProtocol, KeepsTheAnswersThatItHasWhenASizeCannotBeTold) {
  set_up();
  ASSERT_EQ(ask(Type::put, {{"good", {{0, 0, 100}}}}), std::vector<std::int64_t>{0});
  EXPECT_EQ(ask(Type::get, {{"good", {{0, 0, 100}}}, {"cursed", {{0, 100, 100}}}}),
            (std::vector<std::int64_t>{100, -600}));
}

TEST_F(WheelProtocol, BelievesNoBatchWithTooFewAnswers) {
  set_up();
  const std::vector<wire::Item> items = {{"good", {{0, 0, 100}}}, {"short", {{0, 100, 100}}}};
  EXPECT_EQ(ask(Type::put, items), (std::vector<std::int64_t>{-1, -1}));
  EXPECT_EQ(ask(Type::get, items), (std::vector<std::int64_t>{-1, -1}));
  EXPECT_EQ(ask(Type::exist, {{"good", {}}, {"short", {}}}), (std::vector<std::int64_t>{-1, -1}));
}

TEST_F(WheelProtocol, SaysThatARegionCannotBeMappedAndServesTheOthers) {
  set_up();
  link_.send(Type::map, 3, wire::encode(wire::Region{1, std::uint64_t{1} << 60}), memory_.memfd());
  const auto frame = next();
  EXPECT_EQ(frame.header.call, 3u);
  const auto answers = wire::decode_answers(frame.payload);
  ASSERT_TRUE(answers && answers->size() == 1);
  EXPECT_EQ(answers->front().code, -1);
  EXPECT_EQ(ask(Type::put, {{"in it", {{1, 0, 100}}}, {"good", {{0, 0, 100}}}}),
            (std::vector<std::int64_t>{-600, 0}));
}

TEST_F(WheelProtocol, AnswersALoneCallerWithOneThread) {
  set_up();
  auto last = ask(Type::exist, {{"thread", {}}});
  int same = 0;
  // A thread that begins later than the first question may take over once.
  for (int i = 0; i < 100 && same < 20; ++i) {
    const auto next = ask(Type::exist, {{"thread", {}}});
    same = next == last ? same + 1 : 0;
    last = next;
  }
  EXPECT_EQ(same, 20);
}

TEST_F(WheelProtocol, AsksMooncakeTwoThingsAtTheSameTime) {
  set_up();
  for (int round = 0; round < 20; ++round) {
    for (const std::uint64_t call : {21, 22}) {
      link_.send(Type::exist, call, wire::encode(std::vector<wire::Item>{{"meeting", {}}}));
    }
    for (int i = 0; i < 2; ++i) {
      const auto frame = next();
      ASSERT_GE(frame.header.call, 21U);
      const auto answers = wire::decode_answers(frame.payload);
      ASSERT_TRUE(answers && answers->size() == 1);
      EXPECT_EQ(answers->front().code, 1);
    }
  }
}

// While a get hangs in Mooncake's client, others are made without it, and in one call.
TEST_F(WheelProtocol, GetsOfSeveralCallersGoTogetherAndPastOneThatHangs) {
  set_up();
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_EQ(ask(Type::put, {{key, {{0, 0, 100}}}}), std::vector<std::int64_t>{0});
  }
  wire::Payload frames;  // sent in one piece: whoever reads the first one sees them all
  std::uint64_t call = 31;
  for (const char* key : {"gate", "a", "b", "c"}) {
    const auto items = wire::encode(std::vector<wire::Item>{{key, {{0, call * 100, 100}}}});
    const auto header = wire::encode({Type::get, call++, static_cast<std::uint32_t>(items.size())});
    frames.insert(frames.end(), header.begin(), header.end());
    frames.insert(frames.end(), items.begin(), items.end());
  }
  ASSERT_EQ(::send(child_.socket(), frames.data(), frames.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(frames.size()));
  for (const std::uint64_t expected : {32, 33, 34}) {
    const auto frame = next();
    ASSERT_EQ(frame.header.call, expected);
    const auto answers = wire::decode_answers(frame.payload);
    ASSERT_TRUE(answers && answers->size() == 1);
    EXPECT_EQ(answers->front().code, 100);
  }
  EXPECT_EQ(fact("together"), "3");
  std::ofstream(cluster_.directory() / "open").flush();
  EXPECT_EQ(next().header.call, 31u);
}

TEST_F(WheelProtocol, SaysThatMasterAndClientAreOfDifferentVersions) {
  std::ofstream(cluster_.directory() / "setup-code") << -300;
  const std::string settings = helper_settings(cluster_.options());
  const auto bytes = std::as_bytes(std::span(settings));
  link_.send(Type::setup, 0, {bytes.begin(), bytes.end()});
  const auto frame = next();
  ASSERT_EQ(frame.header.type, Type::state);
  const std::string words(reinterpret_cast<const char*>(frame.payload.data()),
                          frame.payload.size());
  EXPECT_NE(words.find("\"ok\": false"), words.npos) << words;
  EXPECT_NE(words.find("master and client are of different versions"), words.npos) << words;
}

struct NonsenseCase {
  const char* name;
  Type type;
  wire::Payload payload;
};

using ProviderAndNonsense = std::tuple<Provider, NonsenseCase>;
class HelperNonsense : public HelperConversation,
                       public ::testing::WithParamInterface<ProviderAndNonsense> {
 protected:
  HelperNonsense() : HelperConversation(std::get<Provider>(GetParam())) {}
};

TEST_P(HelperNonsense, EndsTheHelper) {
  set_up();
  const auto& nonsense = std::get<NonsenseCase>(GetParam());
  link_.send(nonsense.type, 9, nonsense.payload);
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
    ::testing::Combine(::testing::Values(Provider::library, Provider::wheel),
                       ::testing::Values(NonsenseCase{"CutItems", Type::put, cut_items()},
                                         NonsenseCase{"NoPayload", Type::get, {}},
                                         NonsenseCase{"RegionWithoutItsFile", Type::map,
                                                      wire::encode(wire::Region{1, 5})},
                                         NonsenseCase{"OurOwnWords", Type::started,
                                                      wire::encode(std::vector<wire::Item>{})},
                                         NonsenseCase{"UnknownType", static_cast<Type>(99), {}},
                                         NonsenseCase{"TooLong", Type::put,
                                                      wire::Payload(wire::max_payload_bytes + 1)})),
    [](const auto& one) {
      return name_of(std::get<Provider>(one.param)) + std::get<NonsenseCase>(one.param).name;
    });

}  // namespace
}  // namespace vitrove::mooncake
