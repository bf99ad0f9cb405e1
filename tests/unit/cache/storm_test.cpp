// Everything at once, and then: nothing pinned, nothing lost, everything evictable (field cases
// B33, B65, B66).
#include <random>

#include "support.h"

namespace vitrove::testing {
namespace {

constexpr int operations = rounds(10'000);
constexpr int threads = 8;

// One client of the storm.
class Client {
 public:
  Client(EmbeddingCacheController& controller, FaultyStore& store, unsigned seed)
      : controller_(controller), store_(store), random_(seed) {}

  void act() {
    switch (random_() % 16) {
      case 0:
        controller_.remove(any().key(), std::nullopt, request());
        break;
      case 1:
        controller_.flush(static_cast<FlushScope>(random_() % 3), flushed_model(), request());
        break;
      case 2:
        plant_something();
        break;
      case 3:
        leave_in_the_middle();
        break;
      case 4:
        fail_or_spoil();
        break;
      case 5:
        find();
        break;
      case 6:
        twin();
        break;
      case 7:
        views_.clear();
        break;
      default:
        ask();
    }
    while (views_.size() > 3) views_.erase(views_.begin());
    for (const auto& [view, item] : views_) expect_golden(view, item);
  }

 private:
  Picture any() {
    const int number = static_cast<int>(random_() % 30);
    Picture item = picture(number, 1 + static_cast<std::uint32_t>(number) * 3);
    if (number % 5 == 0) item.model = "other";
    return item;
  }
  std::optional<Digest256> flushed_model() {
    return random_() % 2 == 0 ? std::optional(sha256("other")) : std::nullopt;
  }

  void ask() {
    std::vector<Picture> wanted;
    for (std::size_t n = 1 + random_() % 4; n > 0; --n) wanted.push_back(any());
    auto served = serve(controller_, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) expect_golden(served[i].view, wanted[i]);
    if (random_() % 4 == 0) served[0].view.detach();
    views_.emplace_back(std::move(served[0].view), wanted[0]);
  }

  void plant_something() {
    const Picture item = any();
    Bytes value = stored_value(item);
    if (random_() % 2 == 0) value[random_() % value.size()] ^= std::byte{16};
    put_one(store_.inner(), item.key(), value, PutMode::replace);
  }

  void leave_in_the_middle() {
    std::vector<ValueExpectation> expected{any().expectation(), any().expectation()};
    const auto answers = controller_.acquire(expected, request());
  }

  void fail_or_spoil() {
    const Picture item = any();
    auto answer = acquire_one(controller_, item);
    auto* fill = std::get_if<FillTicket>(&answer);
    if (fill == nullptr) return;
    if (random_() % 2 == 0) return fill->fail(Error(ErrorCode::internal, "no luck"));
    auto rows = item.golden();
    rows[random_() % rows.size()] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(fill->publish({bytes_of(rows), item.rows, item.side(), 1ms}), Error);
  }

  void find() {
    const Picture item = any();
    if (auto hit = controller_.find(item.key(), std::nullopt, request())) {
      expect_golden(hit->view, item);
    }
  }

  // Twins have a name of their own and the rows of the picture whose features they have.
  void twin() {
    const int number = static_cast<int>(random_() % 4);
    const Picture original = picture(1000 + number, 20);
    Picture file = original;
    if (random_() % 2 == 0) file.name += ", wrapped anew";
    auto answer = acquire_one(controller_, file);
    auto* fill = std::get_if<FillTicket>(&answer);
    if (fill == nullptr) return;
    const EmbeddingKey features{sha256("features of " + original.name)};
    if (auto found = fill->resolve_features(features, request())) {
      expect_golden(found->first, original);
    } else {
      expect_golden(publish(*fill, original), original);
    }
  }

  EmbeddingCacheController& controller_;
  FaultyStore& store_;
  std::minstd_rand random_;
  std::vector<std::pair<EmbeddingView, Picture>> views_;
};

TEST(Storm, LeavesNothingBehind) {  // B66
  const auto near = std::make_shared<FaultyStore>(make_memory_store());
  const auto far = std::make_shared<FaultyStore>(make_memory_store({.capacity = 200 * 1024}));
  auto options = small_pool(40);
  options.pool.poison_on_free = true;
  options.put_threads = 2;
  options.max_eviction_batch = 3;
  EmbeddingCacheController controller(options, {near, far});
  // A store that misbehaves now and then, in every way that needs no gate.
  for (const Fault fault : {Fault::error, Fault::no_effect, Fault::short_read, Fault::wrong_bytes,
                            Fault::missing_result, Fault::throws}) {
    near->add({.op = StoreOp::get, .fault = fault, .bytes = 300, .skip = 50, .times = 5});
  }
  near->add({.op = StoreOp::exist, .fault = Fault::vanish, .skip = 500, .times = 20});
  far->add({.op = StoreOp::put, .status = StoreStatus::no_space, .skip = 20, .times = 20});

  std::vector<std::jthread> clients;
  for (int t = 0; t < threads; ++t) {
    clients.emplace_back([&, t] {
      Client client(controller, *near, static_cast<unsigned>(t) + 66);
      for (int i = 0; i < operations / threads; ++i) client.act();
    });
  }
  clients.clear();
  settle(controller);
  controller.check_invariants();
  const auto stats = controller.stats();
  EXPECT_EQ(stats.bytes_pinned, 0U);
  EXPECT_EQ(stats.bytes_quarantined, 0U);
  EXPECT_EQ(stats.entries_filling, 0U);
  EXPECT_GT(stats.evictions_space, 0U);

  // Everything that is cached can be evicted: as many one-page items as there are pages.
  for (int i = 5000; i < 5040; ++i) {
    EXPECT_TRUE(serve_one(controller, picture(i)).view.pooled()) << i;
  }
  settle(controller);
  for (int i = 5000; i < 5040; ++i) EXPECT_TRUE(is_cached(controller, picture(i))) << i;
  controller.check_invariants();
}

// Bounded in bytes, whatever comes by (B65).
TEST(Storm, TheCacheStaysWithinItsBound) {
  EmbeddingCacheController controller(small_pool(32));
  for (int i = 0; i < rounds(5'000); ++i) {
    serve_one(controller, picture(i, i % 2 == 0 ? in_pages(1) : in_pages(3)));
    if (i % 100 == 0) {
      const auto stats = controller.stats();
      ASSERT_LE(stats.bytes_used, 32 * page);
      ASSERT_LE(stats.entries_ready, 32U);
    }
  }
  EXPECT_GT(controller.stats().evictions_space, static_cast<std::uint64_t>(rounds(5'000)) - 100);
  controller.check_invariants();
}

}  // namespace
}  // namespace vitrove::testing
