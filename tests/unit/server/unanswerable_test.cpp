// Answers that cannot be made, such as for want of memory: whoever gives them lives on.
#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <utility>

#include <gtest/gtest.h>

#include "server/health_monitor.h"
#include "server/router.h"
#include "support.h"

namespace vitrove::test {
namespace {

using namespace std::chrono_literals;

void throw_bad_alloc() { throw std::bad_alloc(); }

TEST(HealthMonitor, AnAnswerThatThrowsCostsNobodyElseHis) {
  const ServiceParts parts;
  HealthMonitor monitor(*parts.service);
  monitor.ask(throw_bad_alloc);
  std::promise<void> answered;
  monitor.ask([&] { answered.set_value(); });
  EXPECT_EQ(answered.get_future().wait_for(patience), std::future_status::ready);
}

TEST(HealthMonitor, AnAnswerThatThrowsWhileItStopsIsOverlooked) {
  const ServiceParts parts;
  HealthMonitor monitor(*parts.service);
  monitor.stop();
  EXPECT_NO_THROW(monitor.ask(throw_bad_alloc));
}

class NobodyWatches final : public ReplyObserver {
 public:
  void replied(const HttpRequest&, const HttpResponse&, std::chrono::microseconds) override {}
};

// A router with one route that stands at a gate, and one thread to run it.
class RouterTest : public ::testing::Test {
 protected:
  std::vector<Route> routes() {
    Route route{.method = "GET", .path = "/slow", .label = "slow", .lane = Lane::service};
    route.handler = [this](HttpRequest&) {
      gate_.pass();
      return HttpResponse{};
    };
    return {route};
  }

  void ask(Responder respond) {
    HttpRequest request;
    request.method = "GET";
    request.path = "/slow";
    ASSERT_FALSE(router_.admit(request).refusal);
    router_.handle(std::move(request), std::move(respond));
  }

  Gate gate_{false};
  WorkerPool control_{"control", 1, 4};
  WorkerPool admin_{"admin", 1, 4};
  WorkerPool far_{"far", 1, 4};
  WorkerPool service_{"service", 1, 4};
  WorkerPool media_{"media", 1, 4};
  const AccessControl access_{small_config(), false};
  const std::atomic<Phase> phase_{Phase::serving};
  NobodyWatches observer_;
  Router router_{routes(), access_, Lanes{control_, admin_, far_, service_, media_},
                 60s,      phase_,  observer_};
};

TEST_F(RouterTest, ADroppedRequestThatCannotBeAnsweredEndsNothing) {
  std::promise<int> first_status;
  ask([&](HttpResponse response) { first_status.set_value(response.status); });
  ASSERT_TRUE(gate_.wait_for_waiting(1));
  std::atomic<int> attempts{0};
  ask([&](HttpResponse) {
    ++attempts;
    throw_bad_alloc();
  });
  std::promise<int> last_status;
  ask([&](HttpResponse response) { last_status.set_value(response.status); });

  std::jthread stopping([&] { service_.stop(); });
  auto last = last_status.get_future();
  ASSERT_EQ(last.wait_for(patience), std::future_status::ready);
  EXPECT_EQ(last.get(), 503);
  EXPECT_EQ(attempts, 1);
  gate_.open();
  stopping.join();
  EXPECT_EQ(first_status.get_future().get(), 200);
}

}  // namespace
}  // namespace vitrove::test
