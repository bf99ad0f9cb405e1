// The supervisor of a helper that keeps it from its work, or that leaves something behind.
#include "stores/mooncake/helper_process.h"

#include <csignal>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "contract/test_values.h"
#include "stores/mooncake/helper_command.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/short_of_memory.h"
#include "unit/mooncake/stuck_resolver.h"
#include "unit/mooncake/waiting.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::filesystem::path write_program(const FakeCluster& cluster, const std::string& lines) {
  const auto program = cluster.directory() / "program";
  std::ofstream(program) << "#!/bin/sh\n" << lines << '\n';
  ::chmod(program.c_str(), 0700);
  return program;
}

bool is_down(const EmbeddingStore& store) {
  return eventually([&] { return store.health().state == StoreState::down; });
}

TEST(Supervisor, SurvivesAWantOfMemory) {
  const FakeCluster cluster;
  auto options = cluster.options();
  // The header of an answer of 4 MiB, and as many bytes.
  options.helper = write_program(
      cluster,
      R"(printf '\126\124\115\113\001\000\020\000\001\000\000\000\000\000\000\000\000\000\100\000\000\000\000\000' >&3
head -c 4194304 /dev/zero >&3
sleep 1000)");
  const ScopedShortage shortage(1 << 20);
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("bad_alloc"));
}

TEST(Supervisor, HasAnEarForMoreThanAHelperThatNeverStopsTalking) {
  const FakeCluster cluster;
  auto options = cluster.options();
  options.helper = write_program(cluster, "exec yes >&2");
  options.start_timeout = milliseconds(300);
  const auto store = make_mooncake_store(options);
  ASSERT_TRUE(is_down(*store));
  EXPECT_THAT(store->health().detail, HasSubstr("took longer"));
}

TEST(Supervisor, EndsWithTheStoreThoughTheMastersNameIsLookedUpForEver) {
  const FakeCluster cluster;
  const StuckResolver resolver;
  auto options = cluster.options();
  options.master = std::string(stuck_name) + ":50051";
  options.connect_timeout = std::chrono::hours(1);
  auto store = make_mooncake_store(options);
  ASSERT_TRUE(eventually([] { return StuckResolver::askers() > 0; }));
  store.reset();
  EXPECT_GT(StuckResolver::askers(), 0) << "it did not wait for the answer";
}

TEST(Supervisor, GivesMemoryBackOnlyWhenNothingOfTheHelperIsLeft) {
  const FakeCluster cluster;
  auto options = cluster.options();
  const auto survivor_file = cluster.directory() / "survivor";
  options.helper =
      write_program(cluster, "setsid sleep 1000 &\necho $! > " + survivor_file.string() +
                                 "\nexec " + cluster.options().helper + " \"$@\"");
  mooncake::HelperOptions helper;
  helper.command = [options] { return mooncake::helper_command(options); };
  helper.setup = mooncake::helper_settings(options);
  helper.hang_time = milliseconds(100);
  mooncake::StagingMemory memory(1 << 20);
  mooncake::HelperProcess process(std::move(helper));
  process.add_region(0, memory.memfd(), memory.size());
  ASSERT_TRUE(process.wait_ready(std::chrono::steady_clock::now() + std::chrono::seconds(60)));

  cluster.set_faults("get hang");
  auto answer = std::async(std::launch::async, [&] {
    mooncake::HelperProcess::Question question;
    question.type = mooncake::wire::Type::get;
    question.items = {{"key", {{0, 0, 100}}}};
    StoreContext context;
    context.deadline = std::chrono::steady_clock::now() + milliseconds(50);
    return process.ask(std::move(question), context).end;
  });
  EXPECT_TRUE(eventually(
      [&] { return process.report().detail.find("does not end") != std::string::npos; }));
  EXPECT_EQ(answer.wait_for(milliseconds(0)), std::future_status::timeout);
  const int survivor = std::stoi(text_of(survivor_file));
  ASSERT_GT(survivor, 1);
  ASSERT_EQ(::kill(survivor, SIGKILL), 0);
  EXPECT_EQ(answer.get(), mooncake::CallEnd::lost);
}

}  // namespace
}  // namespace vitrove::testing
