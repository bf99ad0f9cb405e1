// The parts of the cache by themselves.
#include <map>
#include <random>
#include <set>

#include "cache/breaker.h"
#include "cache/controller_impl.h"
#include "cache/eviction_plan.h"
#include "support.h"

namespace vitrove::testing {
namespace {

// --- the table ---

class Table : public ::testing::Test {
 protected:
  EntryPin make(const EmbeddingKey& key) {
    ValueHeader header;
    header.key = key;
    header.rows = 1;
    header.dim = 1;
    return core_.make_uncached(header, {}, std::vector<std::byte>(4), Uncached::no_space);
  }
  void insert(const EmbeddingKey& key) {
    EntryPin entry = make(key);
    auto& shard = core_.table().shard_of(key);
    std::lock_guard lock(shard.mutex);
    core_.go_live_locked(shard, key, *entry);
  }
  // Keys of one shard whose home cells collide a lot.
  static EmbeddingKey crowded(std::uint64_t number) {
    EmbeddingKey key = key_number(number);
    const std::uint64_t home = number % 3;
    std::memcpy(key.digest.bytes.data(), &home, sizeof home);
    return key;
  }
  void erase(const EmbeddingKey& key) {
    const EntryPin entry = core_.table().find(key);
    ASSERT_TRUE(entry);
    ASSERT_TRUE(entry->drop());
    core_.table().erase(key, *entry);
    entry->unpin();  // the table's count
  }
  CacheCore core_{small_pool(4), {}};
};

TEST_F(Table, KeysWithEqualHashesAreToldApart) {
  for (std::uint64_t i = 0; i < 100; ++i) insert(crowded(i));
  for (std::uint64_t i = 0; i < 100; ++i) {
    const EntryPin found = core_.table().find(crowded(i));
    ASSERT_TRUE(found) << i;
    EXPECT_EQ(found->key, crowded(i));
  }
  EXPECT_FALSE(core_.table().find(crowded(100)));
}

TEST_F(Table, AgreesWithAModelWhateverIsErased) {
  std::minstd_rand random(5);
  std::set<std::uint64_t> model;
  for (int step = 0; step < 5'000; ++step) {
    const std::uint64_t number = random() % 60;
    if (model.erase(number) > 0) {
      erase(crowded(number));
    } else {
      insert(crowded(number));
      model.insert(number);
    }
    if (step % 50 != 0) continue;
    for (std::uint64_t i = 0; i < 60; ++i) {
      ASSERT_EQ(static_cast<bool>(core_.table().find(crowded(i))), model.contains(i)) << i;
    }
    ASSERT_EQ(core_.table().cells_used(), model.size());
  }
}

TEST_F(Table, ErasingAnOldEntryLeavesTheNewOneOfItsKey) {  // B32
  const EmbeddingKey key = key_number(1);
  insert(key);
  const EntryPin old = core_.table().find(key);
  ASSERT_TRUE(old->drop());
  insert(key);  // before the notice about the old one was acted on
  core_.table().erase(key, *old);
  old->unpin();
  const EntryPin found = core_.table().find(key);
  ASSERT_TRUE(found);
  EXPECT_NE(found.get(), old.get());
}

// Readers without a lock against writers that shift, grow and recycle.
TEST_F(Table, AReaderNeverGetsAnotherKeysEntry) {
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> found = 0;
  std::vector<std::jthread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t) + 1);
      while (!over) {
        const EmbeddingKey key = crowded(random() % 60);
        if (const EntryPin entry = core_.table().find(key)) {
          ASSERT_EQ(entry->key, key);
          ASSERT_EQ(entry->details->header.key, key);
          ++found;
        }
      }
    });
  }
  std::minstd_rand random(9);
  std::set<std::uint64_t> present;
  for (int step = 0; step < rounds(20'000); ++step) {
    const std::uint64_t number = random() % 60;
    if (present.erase(number) > 0) {
      erase(crowded(number));
    } else {
      insert(crowded(number));
      present.insert(number);
    }
  }
  ASSERT_TRUE(eventually([&] { return found > 100; }));
  over = true;
  readers.clear();
  for (const std::uint64_t number : present) erase(crowded(number));
  EXPECT_EQ(core_.table().cells_used(), 0U);
}

TEST_F(Table, AnEntryIsFreedOnceWhoeverHoldsItLast) {
  const EmbeddingKey key = key_number(1);
  insert(key);
  Entry* const address = core_.table().find(key).get();
  EntryPin pin = core_.table().find(key);
  EXPECT_FALSE(pin->try_evict());  // pinned
  ASSERT_TRUE(pin->drop());
  EXPECT_FALSE(pin->drop());  // once
  EXPECT_FALSE(pin->try_pin());
  core_.table().erase(key, *pin);
  pin->unpin();
  EXPECT_FALSE(pin->is_free());
  pin.reset();
  EXPECT_TRUE(address->is_free());
  EXPECT_EQ(make(key_number(2)).get(), address);  // used again
}

// --- planning an eviction ---

class Plan : public ::testing::Test {
 protected:
  // One character a page: '.' free, a letter an entry that may go, a digit one that may not.
  static std::vector<PageBlock> blocks(const std::string& pages) {
    std::vector<PageBlock> list;
    for (std::uint32_t at = 0; at < pages.size(); ++at) {
      const bool free = pages[at] == '.';
      const auto owner = free ? PageBlock::no_owner : static_cast<std::uint32_t>(pages[at]);
      if (!list.empty() && list.back().free == free && list.back().owner == owner) {
        ++list.back().run.count;
      } else {
        list.push_back({{at, 1}, free, owner});
      }
    }
    return list;
  }
  // Who goes so that `rows` rows of `pages_a_row` pages fit, in order of name; "-" for nobody can.
  static std::string plan(const std::string& pages, std::uint64_t rows, double pages_a_row,
                          std::uint64_t tail = 0) {
    const PayloadNeed need{rows, static_cast<std::uint64_t>(pages_a_row * page), tail};
    const auto owners =
        plan_eviction(blocks(pages), need, page, [](std::uint32_t owner) { return owner >= 'A'; });
    if (!owners) return "-";
    std::string names;
    for (const std::uint32_t owner : *owners) names += static_cast<char>(owner);
    return names;
  }
};

TEST_F(Plan, EvictsNobodyWhenThereIsRoom) { EXPECT_EQ(plan("ab...c", 1, 3), ""); }

TEST_F(Plan, FindsTheCheapestNeighbours) {
  EXPECT_EQ(plan("aa1bb..ccc", 1, 3), "b");
  EXPECT_EQ(plan("aaaab.c...d", 1, 5), "c");
  EXPECT_EQ(plan("aaa1bbc1.d.", 1, 3), "d");
}

TEST_F(Plan, EvictsNobodyInVain) {
  EXPECT_EQ(plan("aa1bb1cc1dd", 1, 3), "-");
  EXPECT_EQ(plan("aa1bb1cc1dd", 5, 2), "-");
  EXPECT_EQ(plan("11111", 1, 1), "-");
  EXPECT_EQ(plan("1.1.1", 3, 1), "-");
}

TEST_F(Plan, UsesSeveralRunsWhenOneIsNotToBeHad) {
  EXPECT_EQ(plan("aa1bb1cc1d", 2, 2), "ab");
  EXPECT_EQ(plan("aa1bbb1c", 2, 2.5), "-");  // only one run holds a whole row
  EXPECT_EQ(plan("aaa1bbb1c", 2, 2.5), "ab");
}

TEST_F(Plan, TheTailNeedsRoomAsWell) {
  EXPECT_EQ(plan("aa1b", 2, 1, page), "ab");
  EXPECT_EQ(plan("aa11", 2, 1, 1), "-");
  EXPECT_EQ(plan("aa1b", 4, 0.5, page), "ab");
}

TEST_F(Plan, AgreesWithTheAllocatorOnWhetherItHelps) {
  std::minstd_rand random(7);
  for (int round = 0; round < rounds(2'000); ++round) {
    std::string pages;
    for (int i = 0; i < 12; ++i) pages += ".ab1"[random() % 4];
    const std::uint64_t rows = 1 + random() % 6;
    const std::uint64_t row_bytes = page / 4 * (1 + random() % 10);
    const std::uint64_t tail = random() % 3 * 1000;
    // What the plan leaves open, an allocator with just these pages taken can serve.
    const auto owners = plan_eviction(blocks(pages), {rows, row_bytes, tail}, page,
                                      [](std::uint32_t owner) { return owner >= 'A'; });
    PagePoolOptions options;
    options.pool_bytes = pages.size() * page;
    options.page_bytes = page;
    options.staging_pages = 1;
    options.header_slots = 1;
    PagePool pool(options);
    std::vector<PageRuns> singles;
    while (auto one = pool.allocate(1, page)) singles.push_back(std::move(*one));
    const auto leave = [&](const std::function<bool(char)>& open) {
      for (PageRuns& single : singles) {
        if (single.segments.empty() || !open(pages[single.segments[0].run.first])) continue;
        pool.release(single);
        single.segments.clear();
      }
    };
    if (owners) {
      leave([&](char who) {
        return who == '.' ||
               std::ranges::find(*owners, static_cast<std::uint32_t>(who)) != owners->end();
      });
      ASSERT_TRUE(pool.allocate(rows, row_bytes, tail)) << pages << " " << rows << " " << row_bytes;
    } else {
      leave([](char who) { return who != '1'; });
      ASSERT_FALSE(pool.allocate(rows, row_bytes, tail))
          << pages << " " << rows << " " << row_bytes;
    }
  }
}

// --- the breaker ---

using Admission = Breaker::Admission;

TEST(Breakers, OpenAfterFaultsInARowAndLetOneTrialThrough) {
  Breaker breaker(3, 10s);
  const auto t = Clock::now();
  EXPECT_FALSE(breaker.failed(t));
  EXPECT_FALSE(breaker.failed(t));
  EXPECT_FALSE(breaker.succeeded());
  EXPECT_FALSE(breaker.failed(t));
  EXPECT_FALSE(breaker.failed(t));
  EXPECT_EQ(breaker.admit(t), Admission::granted);
  EXPECT_TRUE(breaker.failed(t));  // three in a row
  EXPECT_TRUE(breaker.is_open());
  EXPECT_EQ(breaker.admit(t + 9s), Admission::refused);
  EXPECT_EQ(breaker.admit(t + 10s), Admission::trial);
  EXPECT_EQ(breaker.admit(t + 11s), Admission::refused);  // one trial
  EXPECT_FALSE(breaker.failed(t + 12s));
  EXPECT_EQ(breaker.admit(t + 21s), Admission::refused);
  EXPECT_EQ(breaker.admit(t + 22s), Admission::trial);
  EXPECT_TRUE(breaker.succeeded());
  EXPECT_FALSE(breaker.is_open());
  EXPECT_EQ(breaker.admit(t + 22s), Admission::granted);
}

TEST(Breakers, ATrialThatNeverReportsIsFollowedByAnother) {
  Breaker breaker(1, 10s);
  const auto t = Clock::now();
  breaker.failed(t);
  EXPECT_EQ(breaker.admit(t + 10s), Admission::trial);
  EXPECT_EQ(breaker.admit(t + 19s), Admission::refused);
  EXPECT_EQ(breaker.admit(t + 20s), Admission::trial);
}

// --- verification ---

class Verifier : public ::testing::Test {
 protected:
  // The value, scattered as it would be: the header by itself, then odd runs.
  void scatter(Bytes& value) {
    buffers_ = {MutableBuffer(value).first(value_header_size)};
    for (const MutableBuffer piece :
         cut(MutableBuffer(value).subspan(value_header_size), {1000, 333, 2000})) {
      buffers_.push_back(piece);
    }
  }
  std::vector<MutableBuffer> buffers_;
  const Picture a_ = picture(1, 40);
};

TEST_F(Verifier, PiecesOfAnySizeAreAsGoodAsTheWhole) {
  for (const std::size_t step :
       {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{256}, std::size_t{4096}}) {
    Bytes value = stored_value(a_);
    scatter(value);
    ValueVerifier verifier(WantedValue::of(a_.expectation()), buffers_);
    std::uint64_t offset = 0;
    for (const MutableBuffer& buffer : buffers_) {
      for (std::size_t at = 0; at < buffer.size(); at += step) {
        const auto piece = buffer.subspan(at, std::min(step, buffer.size() - at));
        verifier.on_piece(offset, piece);
        offset += piece.size();
      }
    }
    // What was watched is not read again: damage done now is not seen.
    value[300] ^= std::byte{1};
    const VerifiedValue verified = verifier.finish();
    EXPECT_EQ(verified.reject, Reject::none) << step;
    EXPECT_EQ(verified.side, a_.side());
  }
}

TEST_F(Verifier, NaNAcrossPiecesIsSeen) {
  Bytes value = stored_value(a_);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(value.data() + value_header_size + 996, &nan, sizeof nan);  // ends run one
  ValueHeader header;
  ASSERT_EQ(parse_header(value, value.size(), header), Reject::none);
  PayloadChecksum checksum;
  checksum.update(std::span(value).subspan(value_header_size));
  header.payload_checksum = checksum.finish();
  std::ranges::copy(encode_header(header), value.begin());
  scatter(value);
  ValueVerifier verifier(WantedValue::of(a_.expectation()), buffers_);
  std::uint64_t offset = 0;
  for (const MutableBuffer& buffer : buffers_) {
    for (std::size_t at = 0; at < buffer.size(); at += 3) {
      verifier.on_piece(offset + at,
                        buffer.subspan(at, std::min<std::size_t>(3, buffer.size() - at)));
    }
    offset += buffer.size();
  }
  EXPECT_EQ(verifier.finish().reject, Reject::not_finite);
}

TEST_F(Verifier, AStoreThatReportsWrongPiecesIsReadAgain) {
  struct Case {
    const char* what;
    std::function<void(ValueVerifier&, std::span<const MutableBuffer>, ConstBuffer elsewhere)>
        report;
  };
  const std::vector<Case> cases{
      {"nothing", [](auto&, auto, auto) {}},
      {"a gap",
       [](auto& v, auto b, auto) {
         v.on_piece(0, b[0]);
         v.on_piece(300, b[1].subspan(44));
       }},
      {"bytes from elsewhere",
       [](auto& v, auto b, auto e) {
         v.on_piece(0, b[0]);
         v.on_piece(256, e);
       }},
      {"a piece across buffers",
       [](auto& v, auto b, auto) { v.on_piece(0, ConstBuffer(b[0].data(), 400)); }},
      {"an offset beyond all", [](auto& v, auto b, auto) { v.on_piece(1 << 30, b[0]); }},
      {"only a part",
       [](auto& v, auto b, auto) {
         v.on_piece(0, b[0]);
         v.on_piece(256, b[1]);
       }},
      {"a fresh start",
       [](auto& v, auto b, auto) {
         v.on_piece(0, b[0]);
         v.on_piece(256, b[1]);
         v.on_piece(0, b[0]);
       }},
  };
  const Bytes elsewhere(1000);
  for (const Case& test : cases) {
    for (const bool good : {true, false}) {
      Bytes value = stored_value(a_);
      scatter(value);
      ValueVerifier verifier(WantedValue::of(a_.expectation()), buffers_);
      test.report(verifier, buffers_, elsewhere);
      if (!good) value[value.size() - 500] ^= std::byte{8};
      EXPECT_EQ(verifier.finish().reject, good ? Reject::none : Reject::payload_checksum)
          << test.what;
    }
  }
}

// --- lanes ---

class FunctionCall final : public LaneCall {
 public:
  explicit FunctionCall(std::function<void(const std::stop_token&)> call)
      : call_(std::move(call)) {}
  void run(const std::stop_token& shutdown) noexcept override { call_(shutdown); }

 private:
  std::function<void(const std::stop_token&)> call_;
};

TEST(Lanes, RefuseWhenTheQueueIsFullAndWhenAllThreadsAreStuck) {
  Gate gate(false);
  Lane lane(2, 1);
  const auto hang = [&] {
    return std::make_shared<FunctionCall>([&](const auto&) { gate.pass(); });
  };
  const auto first = hang();
  EXPECT_EQ(lane.submit(first), Lane::Submitted::yes);
  ASSERT_TRUE(gate.wait_for_waiting(1));
  const auto second = hang();
  EXPECT_EQ(lane.submit(second), Lane::Submitted::yes);
  ASSERT_TRUE(gate.wait_for_waiting(2));
  EXPECT_EQ(lane.submit(hang()), Lane::Submitted::yes);  // queued
  EXPECT_EQ(lane.submit(hang()), Lane::Submitted::full);
  first->set_bytes_held(100);
  first->set_deadline(Clock::now() - 1s);
  EXPECT_EQ(lane.submit(hang()), Lane::Submitted::full);  // one still moves
  second->set_bytes_held(11);
  second->set_deadline(Clock::now() - 1s);
  EXPECT_EQ(lane.submit(hang()), Lane::Submitted::stuck);
  const auto load = lane.load(Clock::now());
  EXPECT_EQ(load.running, 2U);
  EXPECT_EQ(load.queued, 1U);
  EXPECT_EQ(load.quarantined_bytes, 111U);
  EXPECT_FALSE(lane.wait_idle(Clock::now()));
  gate.open();
  EXPECT_TRUE(lane.wait_idle(Clock::now() + patience));
}

TEST(Lanes, AWithdrawnCallNeverRuns) {
  Gate gate(false);
  Lane lane(1, 10);
  std::atomic<bool> ran = false;
  const auto hang = std::make_shared<FunctionCall>([&](const auto&) { gate.pass(); });
  const auto queued = std::make_shared<FunctionCall>([&](const auto&) { ran = true; });
  lane.submit(hang);
  ASSERT_TRUE(gate.wait_for_waiting(1));
  lane.submit(queued);
  EXPECT_TRUE(lane.withdraw(queued));
  EXPECT_FALSE(lane.withdraw(hang));
  gate.open();
  EXPECT_TRUE(lane.wait_idle(Clock::now() + patience));
  EXPECT_FALSE(ran);
}

TEST(Lanes, ShutdownAsksCallsToStop) {
  Lane lane(1, 10);
  Gate started(false);
  lane.submit(std::make_shared<FunctionCall>([&](const std::stop_token& shutdown) {
    started.open();
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait(lock, shutdown, [] { return false; });
  }));
  started.pass();
  EXPECT_TRUE(lane.shut_down(Clock::now() + patience));
  EXPECT_EQ(lane.submit(std::make_shared<FunctionCall>([](const auto&) {})),
            Lane::Submitted::stuck);
}

}  // namespace
}  // namespace vitrove::testing
