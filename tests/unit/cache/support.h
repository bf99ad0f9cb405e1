// What the tests of the cache share: pictures with known embeddings, controllers of a handy size,
// and short ways to say what a request does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/controller_impl.h"
#include "contract/faulty_store.h"
#include "contract/gate.h"
#include "contract/test_values.h"
#include "vitrove/embedding_cache_controller.h"
#include "vitrove/memory_store.h"

namespace vitrove::testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

inline constexpr std::uint64_t page = 4096;
inline constexpr std::uint32_t dim = 64;  // float32: 256 bytes a row, 16 rows a page
inline constexpr std::uint32_t rows_per_page = 16;

// Rows that fill so many pages and leave room for the side data; or leave none.
constexpr std::uint32_t in_pages(std::uint32_t pages) { return pages * rows_per_page - 1; }
constexpr std::uint32_t exactly_in_pages(std::uint32_t pages) { return pages * rows_per_page; }

inline constexpr auto patience = std::chrono::seconds(120);

// Long loops run shortened under sanitizers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool is_sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool is_sanitized = false;
#endif
constexpr int rounds(int count) { return is_sanitized ? count / 5 : count; }

// A picture: what its key is, and what its embedding is.
struct Picture {
  std::string name;
  std::uint32_t rows = in_pages(1);
  std::string model = "model";
  std::string tenant;
  Modality modality = Modality::image;

  EmbeddingKey key() const { return {sha256("key/" + model + "/" + tenant + "/" + name)}; }
  ValueExpectation expectation(bool rows_known = true) const {
    ValueExpectation expected;
    expected.key = key();
    expected.model_fingerprint = sha256(model);
    expected.tenant = tenant_digest(tenant);
    expected.modality = modality;
    expected.dtype = DType::float32;
    expected.dim = dim;
    if (rows_known) expected.rows = rows;
    return expected;
  }
  // Finite floats that differ everywhere for another name.
  std::vector<float> golden() const {
    std::mt19937_64 random(DigestHash{}(sha256(model + "/" + name)));
    std::vector<float> values(std::size_t{rows} * dim);
    for (float& value : values) value = static_cast<float>(random() >> 40) / 1024.0F;
    return values;
  }
  SideData side() const {
    SideData data;
    data.grid = Grid{1, rows, 1};
    return data;
  }
};

inline Picture picture(int number, std::uint32_t rows = in_pages(1)) {
  return {"picture " + std::to_string(number), rows};
}

inline std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

inline std::vector<std::byte> rows_of(const EmbeddingView& view) {
  std::vector<std::byte> rows;
  for (const auto& run : view.runs()) rows.insert(rows.end(), run.begin(), run.end());
  return rows;
}

inline std::vector<std::byte> golden_bytes(const Picture& item) {
  const auto values = item.golden();
  const auto bytes = bytes_of(values);
  return {bytes.begin(), bytes.end()};
}

inline void expect_golden(const EmbeddingView& view, const Picture& item) {
  ASSERT_TRUE(view) << item.name;
  EXPECT_EQ(view.rows(), item.rows) << item.name;
  EXPECT_EQ(view.dim(), dim);
  EXPECT_EQ(view.dtype(), DType::float32);
  EXPECT_EQ(view.side_data(), item.side()) << item.name;
  EXPECT_TRUE(rows_of(view) == golden_bytes(item)) << item.name << " has wrong rows";
}

inline ControllerOptions small_pool(std::uint64_t pages) {
  ControllerOptions options;
  options.pool.pool_bytes = pages * page;
  options.pool.page_bytes = page;
  options.pool.staging_pages = 32;
  options.pool.header_slots = 256;
  options.eviction_policy = "lru";   // tests know who is oldest
  options.store_timeout = patience;  // tests that want to see it expire set it
  options.put_timeout = patience;
  options.shutdown_timeout = patience;
  options.get_threads = 2;
  options.put_threads = 1;
  options.breaker_faults = 1'000'000;
  return options;
}

inline RequestContext request() {
  RequestContext context;
  context.deadline = Clock::now() + patience;
  context.req_id = "test";
  return context;
}

// A controller over a faulty store over a memory store.
struct Tierful {
  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>(make_memory_store());
};

inline EmbeddingView publish(FillTicket& ticket, const Picture& item,
                             std::chrono::microseconds cost = 1000us) {
  const auto values = item.golden();
  return ticket.publish({bytes_of(values), item.rows, item.side(), cost});
}

// What a request for one picture did.
struct Served {
  EmbeddingView view;
  Source source = Source::encoded;
};

// A whole request of one caller: acquire, encode what is to be encoded, join what is under way.
inline std::vector<Served> serve(EmbeddingCacheController& controller,
                                 const std::vector<Picture>& items,
                                 std::atomic<int>* encodes = nullptr) {
  std::vector<ValueExpectation> expected;
  for (const Picture& item : items) expected.push_back(item.expectation());
  auto answers = controller.acquire(expected, request());
  std::vector<Served> served(items.size());
  const auto encode = [&](FillTicket& ticket, std::size_t i) {
    if (encodes != nullptr) ++*encodes;
    served[i] = {publish(ticket, items[i]), Source::encoded};
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (auto* hit = std::get_if<Hit>(&answers[i])) {
      served[i] = {std::move(hit->view), hit->source};
    } else if (auto* fill = std::get_if<FillTicket>(&answers[i])) {
      encode(*fill, i);
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    auto* join = std::get_if<JoinTicket>(&answers[i]);
    if (join == nullptr) continue;
    auto outcome = join->wait(request());
    if (auto* view = std::get_if<EmbeddingView>(&outcome)) {
      served[i] = {std::move(*view), Source::joined};
    } else {
      encode(std::get<FillTicket>(outcome), i);
    }
  }
  return served;
}

inline Served serve_one(EmbeddingCacheController& controller, const Picture& item,
                        std::atomic<int>* encodes = nullptr) {
  return std::move(serve(controller, {item}, encodes)[0]);
}

inline Acquired acquire_one(EmbeddingCacheController& controller, const Picture& item,
                            const RequestContext& context = request()) {
  const auto expected = item.expectation();
  return std::move(controller.acquire({&expected, 1}, context)[0]);
}

inline FillTicket lead(EmbeddingCacheController& controller, const Picture& item) {
  return std::get<FillTicket>(acquire_one(controller, item));
}

inline bool is_cached(EmbeddingCacheController& controller, const Picture& item) {
  return static_cast<bool>(controller.try_get(item.key()));
}

// A value as a controller stores it; `more_side` follows the side data that the picture has.
inline Bytes stored_value(const Picture& item, std::chrono::microseconds cost = 1000us,
                          const Bytes& more_side = {}) {
  auto side = item.side().encode();
  side.insert(side.end(), more_side.begin(), more_side.end());
  const auto rows = golden_bytes(item);
  ValueHeader header;
  const auto expected = item.expectation();
  header.key = expected.key;
  header.model_fingerprint = expected.model_fingerprint;
  header.tenant = expected.tenant;
  header.modality = expected.modality;
  header.dtype = expected.dtype;
  header.rows = item.rows;
  header.dim = dim;
  header.side_bytes = static_cast<std::uint32_t>(side.size());
  header.created_us = 1;
  header.encode_cost_us = static_cast<std::uint64_t>(cost.count());
  PayloadChecksum checksum;
  checksum.update(rows);
  checksum.update(side);
  header.payload_checksum = checksum.finish();
  const auto head = encode_header(header);
  Bytes value(head.begin(), head.end());
  value.insert(value.end(), rows.begin(), rows.end());
  value.insert(value.end(), side.begin(), side.end());
  return value;
}

inline Bytes alias_value(const EmbeddingKey& alias, const EmbeddingKey& target,
                         const Picture& like) {
  SideData side;
  side.alias_target = target;
  const auto side_bytes = side.encode();
  ValueHeader header;
  const auto expected = like.expectation();
  header.kind = ValueKind::alias;
  header.key = alias;
  header.model_fingerprint = expected.model_fingerprint;
  header.tenant = expected.tenant;
  header.modality = expected.modality;
  header.side_bytes = static_cast<std::uint32_t>(side_bytes.size());
  PayloadChecksum checksum;
  checksum.update(side_bytes);
  header.payload_checksum = checksum.finish();
  const auto head = encode_header(header);
  Bytes value(head.begin(), head.end());
  value.insert(value.end(), side_bytes.begin(), side_bytes.end());
  return value;
}

inline void plant(EmbeddingStore& store, const Picture& item) {
  ASSERT_TRUE(put_one(store, item.key(), stored_value(item), PutMode::replace).ok());
}

inline void settle(EmbeddingCacheController& controller) {
  ASSERT_TRUE(controller.wait_for_puts(Clock::now() + patience));
}

inline std::uint64_t rejected(const EmbeddingCacheController& controller,
                              const std::string& reason) {
  for (const auto& [name, count] : controller.stats().rejected) {
    if (name == reason) return count;
  }
  return 0;
}

inline std::uint64_t rejected(const EmbeddingCacheController& controller) {
  std::uint64_t total = 0;
  for (const auto& [name, count] : controller.stats().rejected) total += count;
  return total;
}

inline LookupStats lookups(const EmbeddingCacheController& controller,
                           Modality modality = Modality::image) {
  return controller.stats().lookups[static_cast<std::size_t>(modality)];
}

// How many follow the fill of `key` that is under way.
inline std::size_t followers_of(EmbeddingCacheController& controller, const EmbeddingKey& key) {
  auto& impl = ControllerAccess::impl(controller);
  auto& shard = impl.core->table().shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.flights.find(key);
  return found == shard.flights.end() ? 0 : found->second->followers;
}

// Until `holds()`, without a fixed sleep; false when that takes too long.
template <typename Predicate>
bool eventually(Predicate holds) {
  const auto deadline = Clock::now() + patience;
  while (!holds()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace vitrove::testing
