// What stores do wrong costs one item a miss, and nothing else (field cases B37, B39, B40, B43,
// B45, B54, B56, B57, B63, B86).
#include <set>

#include "support.h"

namespace vitrove::testing {
namespace {

// A fresh instance over a store that holds some pictures.
class Stores : public ::testing::Test {
 protected:
  Stores() : controller_(small_pool(64), {store_}) {}

  void plant_all(int count) {
    for (int i = 0; i < count; ++i) {
      pictures_.push_back(picture(i));
      plant(store_->inner(), pictures_.back());
    }
  }
  const EmbeddingKey key(int number) const { return picture(number).key(); }
  void at_rest() {
    settle(controller_);
    controller_.check_invariants();
  }

  std::shared_ptr<FaultyStore> store_ = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller_;
  std::vector<Picture> pictures_;
};

struct FailingGet {
  const char* what;
  FaultRule rule;
  bool replaced = false;  // whether the next put replaces what stands there
};

FaultRule get_fault(Fault fault, std::uint64_t bytes = 1,
                    StoreStatus status = StoreStatus::io_error) {
  return {.op = StoreOp::get, .fault = fault, .status = status, .bytes = bytes};
}

class OneBadItem : public ::testing::TestWithParam<FailingGet> {};

TEST_P(OneBadItem, IsRecomputedAndTheOthersAreUsed) {  // B39, B54, B56
  for (const std::set<int>& bad :
       {std::set{0}, std::set{3}, std::set{7}, std::set{0, 1, 2, 3, 4, 5, 6, 7}}) {
    const auto store = std::make_shared<FaultyStore>(make_memory_store());
    EmbeddingCacheController controller(small_pool(64), {store});
    std::vector<Picture> pictures;
    for (int i = 0; i < 8; ++i) {
      pictures.push_back(picture(i));
      plant(store->inner(), pictures.back());
    }
    for (const int i : bad) {
      auto rule = GetParam().rule;
      rule.key = picture(i).key();
      rule.times = 1;
      store->add(rule);
    }
    std::atomic<int> encodes = 0;
    {
      const auto served = serve(controller, pictures, &encodes);
      for (int i = 0; i < 8; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(served[at].source, bad.contains(i) ? Source::encoded : Source::store) << i;
        expect_golden(served[at].view, pictures[at]);
      }
    }
    EXPECT_EQ(encodes, static_cast<int>(bad.size()));
    settle(controller);
    controller.check_invariants();
    // Afterwards the store is good, whatever it did.
    EmbeddingCacheController fresh(small_pool(64), {store});
    for (const auto& served : serve(fresh, pictures)) EXPECT_EQ(served.source, Source::store);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Get, OneBadItem,
    ::testing::Values(FailingGet{"io_error", get_fault(Fault::error)},
                      FailingGet{"denied", get_fault(Fault::error, 1, StoreStatus::denied)},
                      FailingGet{"vanished", get_fault(Fault::error, 1, StoreStatus::absent)},
                      FailingGet{"timeout", get_fault(Fault::error, 1, StoreStatus::timeout)},
                      FailingGet{"other_size",
                                 get_fault(Fault::error, 1, StoreStatus::size_mismatch)},
                      FailingGet{"unknown_status", get_fault(Fault::odd_status)},
                      FailingGet{"ok_but_nothing_written", get_fault(Fault::no_effect)},
                      FailingGet{"ok_of_size_0", get_fault(Fault::zero_size)},
                      FailingGet{"ok_of_another_size", get_fault(Fault::wrong_size, 77)},
                      FailingGet{"short_by_some_bytes", get_fault(Fault::short_read, 30)},
                      FailingGet{"only_the_header", get_fault(Fault::short_read, 4000)},
                      FailingGet{"flipped_in_the_rows", get_fault(Fault::wrong_bytes, 1234)},
                      FailingGet{"flipped_in_the_header", get_fault(Fault::wrong_bytes, 70)}),
    [](const auto& test) { return test.param.what; });

struct BadCall {
  const char* what;
  StoreOp op;
  Fault fault;
};

class OneBadCall : public ::testing::TestWithParam<BadCall> {};

// Where nobody knows which key a result is about, none is believed.
TEST_P(OneBadCall, IsAMissOfItsItemsAndNothingWorse) {  // B56, B57
  const auto store = std::make_shared<FaultyStore>(make_memory_store());
  EmbeddingCacheController controller(small_pool(64), {store});
  const std::vector<Picture> pictures{picture(0), picture(1), picture(2)};
  for (const Picture& item : pictures) plant(store->inner(), item);
  store->add({.op = GetParam().op, .fault = GetParam().fault, .times = 1});
  {
    const auto served = serve(controller, pictures);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      EXPECT_EQ(served[i].source, Source::encoded);
      expect_golden(served[i].view, pictures[i]);
    }
  }
  settle(controller);
  controller.check_invariants();
  const auto stats = controller.stats().stores.at(0);
  const auto& op = GetParam().op == StoreOp::get ? stats.get : stats.exist;
  EXPECT_EQ(op.faults, 3U);
  EXPECT_EQ(op.ok, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Store, OneBadCall,
    ::testing::Values(BadCall{"get_throws", StoreOp::get, Fault::throws},
                      BadCall{"get_answers_too_few", StoreOp::get, Fault::missing_result},
                      BadCall{"get_answers_too_many", StoreOp::get, Fault::extra_result},
                      BadCall{"exist_throws", StoreOp::exist, Fault::throws},
                      BadCall{"exist_answers_too_few", StoreOp::exist, Fault::missing_result},
                      BadCall{"exist_answers_too_many", StoreOp::exist, Fault::extra_result}),
    [](const auto& test) { return test.param.what; });

TEST_F(Stores, AValueThatVanishesAfterItsExistenceWasToldIsAMiss) {  // B43
  plant_all(8);
  store_->add({.op = StoreOp::exist, .fault = Fault::vanish});
  for (const Served& served : serve(controller_, pictures_)) {
    EXPECT_EQ(served.source, Source::encoded);
  }
  at_rest();
  EXPECT_EQ(controller_.stats().stores[0].get.absent, 8U);
  EXPECT_EQ(controller_.stats().stores[0].get.faults, 0U);
}

TEST_F(Stores, AnExistenceThatIsALieIsAMiss) {  // B56
  for (const Fault fault : {Fault::no_effect, Fault::zero_size, Fault::odd_status}) {
    store_->add({.op = StoreOp::exist, .fault = fault, .times = 1});
    expect_golden(serve_one(controller_, picture(static_cast<int>(fault))).view,
                  picture(static_cast<int>(fault)));
  }
  // A size beyond all measure allocates nothing.
  const Picture a = picture(100);
  store_->add({.op = StoreOp::exist, .fault = Fault::wrong_size, .bytes = std::uint64_t{1} << 60});
  store_->add({.op = StoreOp::exist, .fault = Fault::wrong_size, .bytes = ~std::uint64_t{0}});
  serve_one(controller_, a);
  auto expected = picture(101).expectation(false);  // rows not known: the size alone speaks
  auto answer = std::move(controller_.acquire({&expected, 1}, request())[0]);
  EXPECT_TRUE(std::holds_alternative<FillTicket>(answer));
  answer = Hit{};
  EXPECT_EQ(store_->calls(StoreOp::get), 0U);
  at_rest();
}

TEST_F(Stores, AVanishedValueIsAskedForOnceAndStoredAgain) {  // B40
  const Picture a = picture(1);
  plant(store_->inner(), a);
  store_->add({.op = StoreOp::exist, .fault = Fault::vanish, .times = 1});
  std::atomic<int> encodes = 0;
  for (int i = 0; i < 100; ++i) expect_golden(serve_one(controller_, a, &encodes).view, a);
  at_rest();
  EXPECT_EQ(encodes, 1);
  EXPECT_EQ(store_->keys(StoreOp::get), 1U);
  EXPECT_EQ(store_->keys(StoreOp::put), 1U);
  EXPECT_EQ(inspect(read_back(*store_, a.key()), a.key()), Reject::none);
}

TEST_F(Stores, ABadValueIsNotReadAgainBeforeItWasReplaced) {  // B40
  const Picture a = picture(1);
  auto value = stored_value(a);
  value[300] ^= std::byte{1};
  ASSERT_TRUE(put_one(store_->inner(), a.key(), value).ok());
  for (int i = 0; i < 5; ++i) {
    // The encoder fails, so nothing is put.
    auto ticket = lead(controller_, a);
    ticket.fail(Error(ErrorCode::internal, "no luck"));
  }
  EXPECT_EQ(store_->keys(StoreOp::get), 1U);
  EXPECT_EQ(rejected(controller_), 1U);
  serve_one(controller_, a);
  at_rest();
  controller_.flush(FlushScope::local, std::nullopt, request());
  EXPECT_EQ(serve_one(controller_, a).source, Source::store);
}

// Right length, wrong bytes.
TEST_F(Stores, ABitFlippedAnywhereIsFoundAndTheValueIsReplaced) {  // B45
  const Picture a = picture(1);
  const Bytes good = stored_value(a);
  std::minstd_rand random(45);
  for (int i = 0; i < 20; ++i) {
    // Header, rows and side data get their share.
    const std::size_t from = i < 8 ? 0 : i < 16 ? value_header_size : good.size() - 40;
    const std::size_t to = i < 8 ? value_header_size : good.size();
    const std::size_t at = from + random() % (to - from);
    Bytes bad = good;
    bad[at] ^= std::byte{static_cast<unsigned char>(1U << (random() % 8))};
    ASSERT_TRUE(put_one(store_->inner(), a.key(), bad, PutMode::replace).ok());

    const auto before = rejected(controller_);
    {
      const Served served = serve_one(controller_, a);
      EXPECT_EQ(served.source, Source::encoded) << "offset " << at;
      expect_golden(served.view, a);
    }
    EXPECT_EQ(rejected(controller_), before + 1) << "offset " << at;
    settle(controller_);
    controller_.flush(FlushScope::local, std::nullopt, request());
    EXPECT_EQ(serve_one(controller_, a).source, Source::store) << "offset " << at;
    controller_.flush(FlushScope::local, std::nullopt, request());
  }
  at_rest();
}

TEST_F(Stores, SwappedValuesAreNotMistakenForEachOther) {  // B45
  const Picture a = picture(1);
  const Picture b = picture(2);
  ASSERT_TRUE(put_one(store_->inner(), a.key(), stored_value(b)).ok());
  ASSERT_TRUE(put_one(store_->inner(), b.key(), stored_value(a)).ok());
  {
    const auto served = serve(controller_, {a, b});
    expect_golden(served[0].view, a);
    expect_golden(served[1].view, b);
  }
  EXPECT_EQ(rejected(controller_, "key"), 2U);
  at_rest();
  controller_.flush(FlushScope::local, std::nullopt, request());
  for (const Served& served : serve(controller_, {a, b})) EXPECT_EQ(served.source, Source::store);
}

TEST_F(Stores, AValueOfAnotherModelTenantOrShapeIsNotBelieved) {  // B26
  const auto plant_as = [&](const Picture& asked, const Picture& lies) {
    ValueHeader header;
    Bytes value = stored_value(lies);
    ASSERT_EQ(parse_header(value, value.size(), header), Reject::none);
    header.key = asked.key();
    std::ranges::copy(encode_header(header), value.begin());
    ASSERT_TRUE(put_one(store_->inner(), asked.key(), value, PutMode::replace).ok());
  };
  Picture other_model = picture(1);
  other_model.model = "another";
  plant_as(picture(1), other_model);
  Picture other_tenant = picture(2);
  other_tenant.tenant = "somebody";
  plant_as(picture(2), other_tenant);
  Picture video = picture(3);
  video.modality = Modality::video;
  plant_as(picture(3), video);
  for (int i = 1; i <= 3; ++i)
    EXPECT_EQ(serve_one(controller_, picture(i)).source, Source::encoded);
  EXPECT_EQ(rejected(controller_, "model"), 1U);
  EXPECT_EQ(rejected(controller_, "tenant"), 1U);
  EXPECT_EQ(rejected(controller_, "shape"), 1U);
  at_rest();
}

TEST_F(Stores, AStoredNaNIsRejectedRecomputedAndOverwritten) {  // B37
  const Picture a = picture(1);
  Bytes value = stored_value(a);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(value.data() + value_header_size + 40, &nan, sizeof nan);
  ValueHeader header;
  ASSERT_EQ(parse_header(value, value.size(), header), Reject::none);
  PayloadChecksum checksum;
  checksum.update(std::span(value).subspan(value_header_size));
  header.payload_checksum = checksum.finish();
  std::ranges::copy(encode_header(header), value.begin());
  ASSERT_TRUE(put_one(store_->inner(), a.key(), value).ok());

  EXPECT_EQ(serve_one(controller_, a).source, Source::encoded);
  EXPECT_EQ(rejected(controller_, "not_finite"), 1U);
  at_rest();
  EXPECT_EQ(read_back(*store_, a.key()).size(), value.size());
  EXPECT_NE(read_back(*store_, a.key()), value);
}

TEST_F(Stores, ATornValueIsAMissAndIsOverwritten) {  // B44
  const Picture a = picture(1);
  const Bytes good = stored_value(a);
  for (const std::size_t size : {std::size_t{1}, value_header_size - 1, value_header_size,
                                 good.size() - 1, good.size() + 1}) {
    Bytes torn = good;
    torn.resize(size);
    ASSERT_TRUE(put_one(store_->inner(), a.key(), torn, PutMode::replace).ok());
    EXPECT_EQ(serve_one(controller_, a).source, Source::encoded) << size;
    settle(controller_);
    EXPECT_EQ(inspect(read_back(*store_, a.key()), a.key()), Reject::none) << size;
    controller_.flush(FlushScope::local, std::nullopt, request());
  }
  at_rest();
}

TEST_F(Stores, FaultsAreCountedByReasonAndAreNoMisses) {  // B57, B74
  plant_all(3);
  store_->add({.op = StoreOp::get, .key = key(0), .error_number = EACCES});
  store_->add(
      {.op = StoreOp::get, .key = key(1), .status = StoreStatus::unavailable, .error_number = 0});
  serve(controller_, {picture(0), picture(1), picture(2), picture(3)});
  const auto stats = controller_.stats().stores.at(0);
  EXPECT_EQ(stats.name, "faulty");
  EXPECT_EQ(stats.exist.ok, 3U);
  EXPECT_EQ(stats.exist.absent, 1U);
  EXPECT_EQ(stats.get.ok, 1U);
  EXPECT_EQ(stats.get.absent, 0U);
  EXPECT_EQ(stats.get.faults, 2U);
  EXPECT_EQ(stats.get.bytes, stored_value(picture(2)).size());
  EXPECT_THAT(stats.get.reasons, ::testing::UnorderedElementsAre(
                                     std::pair<std::string, std::uint64_t>("EACCES", 1),
                                     std::pair<std::string, std::uint64_t>("unavailable", 1)));
  EXPECT_EQ(stats.get.seconds_buckets.size(), store_seconds_bounds().size() + 1);
  at_rest();
}

TEST_F(Stores, AFailedPutIsOnlyACounter) {  // B52
  store_->add({.op = StoreOp::put, .status = StoreStatus::no_space, .error_number = ENOSPC});
  for (int i = 0; i < 10; ++i) expect_golden(serve_one(controller_, picture(i)).view, picture(i));
  settle(controller_);
  const auto stats = controller_.stats().stores.at(0).put;
  EXPECT_EQ(stats.faults, 10U);
  ASSERT_EQ(stats.reasons.size(), 1U);
  EXPECT_EQ(stats.reasons[0].first, "ENOSPC");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(serve_one(controller_, picture(i)).source, Source::local);
  at_rest();
  // Space comes back without a restart.
  store_->heal();
  serve_one(controller_, picture(11));
  settle(controller_);
  EXPECT_FALSE(read_back(*store_, key(11)).empty());
}

TEST_F(Stores, APutThatThrowsIsOnlyACounter) {  // B57
  store_->add({.op = StoreOp::put, .fault = Fault::throws});
  serve_one(controller_, picture(1));
  at_rest();
  EXPECT_EQ(controller_.stats().stores[0].put.faults, 1U);
}

TEST_F(Stores, AColdInstanceServesRequestsThatAreAllRemote) {  // B63
  plant_all(8);
  const auto served = serve(controller_, pictures_);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(served[i].source, Source::store);
    expect_golden(served[i].view, pictures_[i]);
  }
  // Mixed: pool, store, nobody.
  plant(store_->inner(), picture(20));
  const auto mixed = serve(controller_, {picture(3), picture(30), picture(20)});
  EXPECT_EQ(mixed[0].source, Source::local);
  EXPECT_EQ(mixed[1].source, Source::encoded);
  EXPECT_EQ(mixed[2].source, Source::store);
}

TEST_F(Stores, ARemoteHitWithAFullPoolIsServedUncached) {  // B63
  plant_all(1);
  std::vector<EmbeddingView> pinned;
  for (int i = 100; i < 164; ++i) pinned.push_back(serve_one(controller_, picture(i)).view);
  settle(controller_);
  {
    const Served served = serve_one(controller_, picture(0));
    EXPECT_EQ(served.source, Source::store);
    EXPECT_FALSE(served.view.pooled());
    expect_golden(served.view, picture(0));
  }
  pinned.clear();
  EXPECT_TRUE(serve_one(controller_, picture(0)).view.pooled());
  at_rest();
}

TEST_F(Stores, ABackendSeesNoKeyTwiceInABatch) {
  plant_all(2);
  const auto served =
      serve(controller_, {picture(0), picture(1), picture(0), picture(0), picture(1)});
  EXPECT_EQ(store_->keys(StoreOp::exist), 2U);
  EXPECT_EQ(store_->keys(StoreOp::get), 2U);
  EXPECT_EQ(store_->calls(StoreOp::exist), 1U);
  EXPECT_EQ(served[4].source, Source::joined);
}

TEST_F(Stores, RowsThatTheRequestDoesNotKnowAreTakenFromTheValue) {
  const Picture clip = picture(1, 37);
  plant(store_->inner(), clip);
  auto expected = clip.expectation(false);
  auto answer = std::move(controller_.acquire({&expected, 1}, request())[0]);
  expect_golden(std::get<Hit>(answer).view, clip);
}

TEST_F(Stores, FindNeedsOnlyTheKey) {
  const Picture large = picture(1, in_pages(5));
  plant(store_->inner(), large);
  EXPECT_FALSE(controller_.find(picture(2).key(), std::nullopt, request()));
  {
    auto hit = controller_.find(large.key(), std::nullopt, request());
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->source, Source::store);
    expect_golden(hit->view, large);
  }
  EXPECT_EQ(controller_.find(large.key(), std::nullopt, request())->source, Source::local);
  // It is the entry that a request gets.
  EXPECT_EQ(serve_one(controller_, large).source, Source::local);
  at_rest();
}

TEST_F(Stores, FindInTornPagesCutsTheRowsAnew) {
  std::vector<EmbeddingView> kept;
  for (int i = 0; i < 64; ++i) {
    kept.push_back(serve_one(controller_, picture(1000 + i)).view);
  }
  settle(controller_);
  for (int i = 0; i < 64; i += 2) {
    kept[static_cast<std::size_t>(i)].release();
    controller_.remove(picture(1000 + i).key(), std::nullopt, request());
  }
  // Rows of 768 bytes do not fill pages: where a page ends, a row does not.
  Picture wide = picture(1, 36);
  auto expected = wide.expectation();
  expected.dim = 192;
  expected.rows = 12;
  const auto values = wide.golden();
  const auto rows = bytes_of(values).first(12 * 768);
  auto answer = std::move(controller_.acquire({&expected, 1}, request())[0]);
  std::get<FillTicket>(answer).publish({rows, 12, wide.side(), 1ms});
  settle(controller_);
  controller_.flush(FlushScope::local, std::nullopt, request());
  auto hit = controller_.find(wide.key(), std::nullopt, request());
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->source, Source::store);
  EXPECT_EQ(hit->view.rows(), 12U);
  EXPECT_EQ(hit->view.side_data(), wide.side());
  const auto found = rows_of(hit->view);
  EXPECT_TRUE(std::ranges::equal(found, rows));
  for (const auto& run : hit->view.runs()) EXPECT_EQ(run.size() % 768, 0U);
}

TEST_F(Stores, FindDoesNotGiveATenantWhatIsAnothers) {
  Picture mine = picture(1);
  mine.tenant = "me";
  plant(store_->inner(), mine);
  EXPECT_FALSE(controller_.find(mine.key(), tenant_digest("you"), request()));
  EXPECT_EQ(rejected(controller_), 0U);
  EXPECT_TRUE(controller_.find(mine.key(), tenant_digest("me"), request()));
  EXPECT_FALSE(controller_.find(mine.key(), tenant_digest("you"), request()));  // from the pool
  at_rest();
}

TEST_F(Stores, FindLeavesAKeyToWhoeverEncodesIt) {
  const Picture a = picture(1);
  auto ticket = lead(controller_, a);
  EXPECT_FALSE(controller_.find(a.key(), std::nullopt, request()));
  publish(ticket, a);
  EXPECT_TRUE(controller_.find(a.key(), std::nullopt, request()));
}

}  // namespace
}  // namespace vitrove::testing
