#include "server/worker_pool.h"

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>

#include "server/task_group.h"
#include "support.h"

namespace vitrove::test {
namespace {

TEST(WorkerPool, RunsWhatFitsAndRefusesTheRestAtOnce) {
  Gate gate(false);
  WorkerPool pool("test", 2, 3);
  std::atomic<int> done{0};
  const auto job = [&] {
    gate.pass();
    ++done;
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(pool.submit(job)) << i;
  ASSERT_TRUE(gate.wait_for_waiting(2));
  EXPECT_TRUE(pool.full());
  EXPECT_FALSE(pool.submit(job));
  EXPECT_EQ(pool.running(), 2U);
  EXPECT_EQ(pool.waiting(), 3U);
  gate.open();
  EXPECT_TRUE(eventually([&] { return done == 5 && pool.running() == 0; }));
  EXPECT_FALSE(pool.full());
}

TEST(WorkerPool, WithoutAQueueTakesOneJobAThread) {
  Gate gate(false);
  WorkerPool pool("test", 1, 0);
  EXPECT_TRUE(pool.submit_if_idle([&] { gate.pass(); }));
  EXPECT_FALSE(pool.submit_if_idle([] {}));
  EXPECT_FALSE(pool.submit([] {}));
  gate.open();
  EXPECT_TRUE(eventually([&] { return !pool.full(); }));
}

TEST(WorkerPool, SurvivesAJobThatThrows) {
  WorkerPool pool("test", 1, 8);
  std::promise<void> after;
  EXPECT_TRUE(pool.submit([] { throw std::runtime_error("a job that throws"); }));
  EXPECT_TRUE(pool.submit([&] { after.set_value(); }));
  EXPECT_EQ(after.get_future().wait_for(patience), std::future_status::ready);
}

TEST(WorkerPool, DestroysQueuedJobsUnrunWhenItStops) {
  Gate gate(false);
  auto pool = std::make_unique<WorkerPool>("test", 1, 8);
  auto token = std::make_shared<int>(0);
  std::atomic<bool> ran{false};
  ASSERT_TRUE(pool->submit([&] { gate.pass(); }));
  ASSERT_TRUE(gate.wait_for_waiting(1));
  ASSERT_TRUE(pool->submit([token, &ran] { ran = true; }));
  std::thread opener([&] {
    EXPECT_TRUE(eventually([&] { return token.use_count() == 1; }));
    gate.open();
  });
  pool->stop();
  opener.join();
  EXPECT_FALSE(ran);
  EXPECT_FALSE(pool->submit([] {}));
}

TEST(TaskGroup, RunsEveryJobOnceWithAndWithoutHelpers) {
  WorkerPool pool("test", 4, 0);
  for (const std::size_t helpers : {0U, 1U, 8U}) {
    std::array<std::atomic<int>, 20> runs{};
    TaskGroup::run(pool, helpers, runs.size(), [&](std::size_t i) { ++runs[i]; }, {});
    for (const auto& count : runs) EXPECT_EQ(count, 1);
  }
}

TEST(TaskGroup, MakesProgressWhenAllHelpersAreBusy) {
  Gate gate(false);
  WorkerPool pool("test", 1, 0);
  ASSERT_TRUE(pool.submit([&] { gate.pass(); }));
  std::atomic<int> runs{0};
  TaskGroup::run(pool, 4, 10, [&](std::size_t) { ++runs; }, {});
  EXPECT_EQ(runs, 10);
  gate.open();  // the pool's end waits for its job
}

TEST(TaskGroup, ThrowsTheCauseAndNotTheConsequence) {
  WorkerPool pool("test", 1, 0);
  std::stop_source stop;
  const auto job = [&](std::size_t i) {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped");
    if (i == 2) throw Error(ErrorCode::not_found, "the cause");
  };
  const Failure failure = failure_of([&] { TaskGroup::run(pool, 0, 6, job, stop); });
  EXPECT_EQ(failure.message, "the cause");
  EXPECT_TRUE(stop.stop_requested());
}

TEST(TaskGroup, TellsTheFailureBeforeTheOthersHaveEnded) {
  auto gate = std::make_shared<Gate>(false);
  WorkerPool pool("test", 1, 0);
  // The caller fails at once; the helper's job stands at the gate until the failure was thrown.
  const auto caller = std::this_thread::get_id();
  const auto job = [gate, caller](std::size_t) {
    if (std::this_thread::get_id() != caller) return gate->pass();
    EXPECT_TRUE(gate->wait_for_waiting(1));
    throw Error(ErrorCode::internal, "failed");
  };
  EXPECT_EQ(failure_of([&] { TaskGroup::run(pool, 1, 2, job, {}); }).message, "failed");
  gate->open();
}

TEST(TaskGroup, TurnsForeignExceptionsIntoErrors) {
  WorkerPool pool("test", 1, 0);
  const auto job = [](std::size_t) { throw std::runtime_error("/secret/path"); };
  const Failure failure = failure_of([&] { TaskGroup::run(pool, 0, 1, job, {}); });
  EXPECT_EQ(failure.code, ErrorCode::internal);
  EXPECT_EQ(failure.message, "internal error");
}

}  // namespace
}  // namespace vitrove::test
