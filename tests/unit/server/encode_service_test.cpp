#include "server/encode_service.h"

#include <random>
#include <set>

#include "support.h"

namespace vitrove::test {
namespace {

using testing::Fault;
using testing::FaultyStore;
using testing::StoreOp;

TEST(EncodeService, FirstEncodesAndThenHits) {
  ServiceParts parts;
  auto first = encode(*parts.service, {1});
  auto second = encode(*parts.service, {1});
  EXPECT_EQ(first[0].source, Source::encoded);
  EXPECT_EQ(second[0].source, Source::local);
  EXPECT_EQ(first[0].key, second[0].key);
  EXPECT_EQ(rows_of(first[0].view), rows_of(second[0].view));
  EXPECT_EQ(rows_of(first[0].view), golden(1));
  EXPECT_EQ(parts.encoder->items, 1);
}

TEST(EncodeService, WithoutPoolOrStoreStillAnswers) {
  ServerConfig config = small_config();
  config.pool_size = 0;
  ServiceParts parts(config);
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::encoded);
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::encoded);
  EXPECT_EQ(parts.encoder->items, 2);
}

TEST(EncodeService, GetsFromTheStoreWhatAnotherInstanceEncoded) {
  const auto store = memory_store();
  ServiceParts writer(small_config(), {store});
  const auto written = encode(*writer.service, {1});
  ASSERT_TRUE(writer.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  ServiceParts reader(small_config(), {store});
  const auto read = encode(*reader.service, {1});
  EXPECT_EQ(read[0].source, Source::store);
  EXPECT_EQ(reader.encoder->items, 0);
  EXPECT_EQ(rows_of(read[0].view), rows_of(written[0].view));
  EXPECT_EQ(read[0].view.side_data(), written[0].view.side_data());
  EXPECT_EQ(read[0].view.encode_cost(), written[0].view.encode_cost());
}

TEST(EncodeService, EqualBytesAreOneKeyWhateverTheirWrapping) {
  ServiceParts parts;
  const std::string content = png(3);
  std::vector<EncodeItem> items = {
      url_item(data_url(content)), url_item("data:;BASE64," + to_base64(content)),
      url_item("DATA:image/jpeg;charset=x;base64," + to_base64(content))};
  EncodeItem bytes;
  bytes.bytes = std::make_shared<const Bytes>(to_bytes(content));
  items.push_back(bytes);
  const auto replies = parts.service->encode(request_for(items));
  std::set<EmbeddingKey> keys;
  for (const auto& reply : replies) keys.insert(reply.key);
  EXPECT_EQ(keys.size(), 1U);
  EXPECT_EQ(parts.encoder->items, 1);
}

TEST(EncodeService, AHitNeedsNoDecoding) {
  const auto store = memory_store();
  ServerConfig config = small_config();
  {
    ServiceParts parts(config, {store});
    encode(*parts.service, {1});
    ASSERT_TRUE(parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  config.max_image_pixels = 1;  // whatever is decoded fails
  ServiceParts parts(config, {store});
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::store);
  EXPECT_EQ(failure_of([&] { encode(*parts.service, {2}); }).code, ErrorCode::too_large);
}

TEST(EncodeService, TheSameItemTwiceInARequestIsOneEncode) {
  ServiceParts parts;
  const auto replies = encode(*parts.service, {1, 2, 1});
  EXPECT_EQ(parts.encoder->items, 2);
  EXPECT_EQ(rows_of(replies[0].view), rows_of(replies[2].view));
  EXPECT_NE(rows_of(replies[0].view), rows_of(replies[1].view));
  EXPECT_EQ(replies[2].source, Source::joined);
}

TEST(EncodeService, TwinsShareAnEmbeddingUnderTheKeysAskedFor) {
  ServiceParts parts;
  const auto first = parts.service->encode(request_for({url_item(data_url(png(5)))}));
  const auto twin = parts.service->encode(request_for({url_item(data_url(png(5, 28, 28, 100)))}));
  EXPECT_EQ(parts.encoder->items, 1);
  EXPECT_NE(first[0].key, twin[0].key);
  EXPECT_EQ(first[0].view.stored_key(), first[0].key);
  EXPECT_EQ(twin[0].view.stored_key(), first[0].key);
  EXPECT_EQ(rows_of(first[0].view), rows_of(twin[0].view));
}

TEST(EncodeService, TwinsInOneRequestDoNotWaitForEachOtherForEver) {
  ServiceParts parts;
  std::vector<EncodeItem> items;
  for (const std::size_t block : {100U, 200U, 300U, 400U}) {
    items.push_back(url_item(data_url(png(6, 28, 28, block))));
  }
  const auto replies = parts.service->encode(request_for(items));
  EXPECT_EQ(parts.encoder->items, 1);
  for (const auto& reply : replies) EXPECT_EQ(rows_of(reply.view), rows_of(replies[0].view));
}

TEST(EncodeService, CrossedTwinsOfTwoRequestsBothEnd) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    ServiceParts parts;
    const auto item = [&](std::uint32_t seed, std::size_t block) {
      return url_item(data_url(png(100 * round + seed, 28, 28, block)));
    };
    std::thread other([&] { parts.service->encode(request_for({item(1, 100), item(2, 100)})); });
    parts.service->encode(request_for({item(2, 200), item(1, 200)}));
    other.join();
    EXPECT_EQ(parts.encoder->items, 2);
  }
}

// B29: row blocks belong to their items, whatever the cache holds.
TEST(EncodeService, RepliesAreInRequestOrderWhateverTheCacheHolds) {
  std::vector<std::string> goldens;
  for (std::uint32_t seed = 0; seed < 12; ++seed) goldens.push_back(golden(seed));
  const auto store = memory_store();
  {
    ServiceParts writer(small_config(), {store});
    encode(*writer.service, {0, 3, 6, 9});
    ASSERT_TRUE(writer.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  ServerConfig config = small_config();
  config.pool_size = 4 * config.page_size;
  ServiceParts parts(config, {store});
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint32_t> seeds(1 + random() % 8);
    for (auto& seed : seeds) seed = static_cast<std::uint32_t>(random() % goldens.size());
    const auto replies = encode(*parts.service, seeds);
    ASSERT_EQ(replies.size(), seeds.size());
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      ASSERT_EQ(rows_of(replies[i].view), goldens[seeds[i]]) << "item " << i;
    }
  }
}

// B30
TEST(EncodeService, ConcurrentRequestsForOneNewItemShareOneEncode) {
  ServiceParts parts;
  parts.encoder->gate.close();
  std::vector<std::thread> clients;
  std::mutex mutex;
  std::multiset<Source> sources;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&] {
      const auto replies = encode(*parts.service, {1});
      std::lock_guard lock(mutex);
      sources.insert(replies[0].source);
    });
  }
  ASSERT_TRUE(parts.encoder->gate.wait_for_waiting(1));
  parts.encoder->gate.open();
  for (auto& client : clients) client.join();
  EXPECT_EQ(parts.encoder->items, 1);
  EXPECT_EQ(sources.count(Source::encoded), 1U);
}

TEST(EncodeService, WhenTheLeaderFailsAFollowerTakesOver) {
  ServiceParts parts;
  std::atomic<bool> failed{false};
  parts.encoder->set_before([&] {
    if (!failed.exchange(true)) throw Error(ErrorCode::internal, "the first encode fails");
  });
  parts.encoder->gate.close();
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&] {
      try {
        encode(*parts.service, {1});
        ++good;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::internal);
        ++bad;
      }
    });
  }
  ASSERT_TRUE(parts.encoder->gate.wait_for_waiting(1));
  parts.encoder->gate.open();
  for (auto& client : clients) client.join();
  EXPECT_EQ(good, 5);
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(parts.encoder->items, 2);
}

TEST(EncodeService, WhenTheLeaderLeavesAFollowerTakesOver) {
  ServiceParts parts;
  parts.encoder->gate.close();
  std::stop_source leave;
  std::thread leader([&] {
    EncodeRequest request = request_for({url_item(png_url(1))});
    request.cancel = leave.get_token();
    EXPECT_EQ(failure_of([&] { parts.service->encode(std::move(request)); }).code,
              ErrorCode::cancelled);
  });
  ASSERT_TRUE(parts.encoder->gate.wait_for_waiting(1));
  std::thread follower([&] { EXPECT_EQ(rows_of(encode(*parts.service, {1})[0].view), golden(1)); });
  leave.request_stop();
  leader.join();  // at once, although the encoder still stands at the gate
  parts.encoder->gate.open();
  follower.join();
}

// The running batch keeps the tensors of a request that has left, so the budget keeps their share.
TEST(EncodeService, TensorsCountForAsLongAsTheEncoderHasThem) {
  ServerConfig config = small_config();
  const auto code_for = [&](ServiceParts& parts, std::uint32_t seed, std::chrono::milliseconds time,
                            std::stop_token cancel = {}) {
    EncodeRequest request = request_for({url_item(png_url(seed))});
    request.deadline = std::chrono::steady_clock::now() + time;
    request.cancel = std::move(cancel);
    return failure_of([&] { parts.service->encode(request); }).code;
  };
  config.max_decode_bytes = 2 * 3 * 28 * 28;  // one picture, and the stub's copy of it
  ServiceParts parts(config);
  parts.encoder->gate.close();
  std::stop_source leave;
  std::jthread leaver([&] {
    EXPECT_TRUE(parts.encoder->gate.wait_for_waiting(1));
    leave.request_stop();
  });
  ASSERT_EQ(code_for(parts, 1, patience, leave.get_token()), ErrorCode::cancelled);
  // A busy machine may not get as far as asking for memory in a short time.
  ErrorCode code = ErrorCode::internal;
  for (std::chrono::milliseconds time{100}; time < patience; time *= 2) {
    code = code_for(parts, 2, time);
    if (code == ErrorCode::unavailable) break;
  }
  EXPECT_EQ(code, ErrorCode::unavailable) << "no room while the encoder is at it";
  parts.encoder->gate.open();
  EXPECT_EQ(encode(*parts.service, {3}).size(), 1U);
}

TEST(EncodeService, ALateRequestIsToldSoWhileTheEncoderStillRuns) {
  ServiceParts parts;
  parts.encoder->gate.close();
  EncodeRequest request = request_for({url_item(png_url(1))});
  request.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(failure_of([&] { parts.service->encode(std::move(request)); }).code,
            ErrorCode::deadline_exceeded);
  parts.encoder->gate.open();
  EXPECT_EQ(encode(*parts.service, {1})[0].view.rows(), 16U);
}

TEST(EncodeService, AFailingItemFailsTheRequestAndNamesItself) {
  ServiceParts parts;
  const std::string broken = data_url(png(9).substr(0, 300));
  const Failure failure = failure_of([&] {
    parts.service->encode(
        request_for({url_item(png_url(1)), url_item(png_url(2)), url_item(broken)}));
  });
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_EQ(failure.item, 2);
  ASSERT_TRUE(eventually([&] { return parts.controller->stats().entries_filling == 0; }));
  EXPECT_EQ(rows_of(encode(*parts.service, {1})[0].view), golden(1));
  EXPECT_EQ(rows_of(encode(*parts.service, {2})[0].view), golden(2));
}

TEST(EncodeService, ItemsThatWereEncodedStayCachedWhenALaterOneFails) {
  ServiceParts parts;
  encode(*parts.service, {1});
  failure_of([&] {
    parts.service->encode(request_for({url_item(png_url(1)), url_item("data:,not-a-picture")}));
  });
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::local);
}

TEST(EncodeService, EveryKindOfBadMediaHasItsCode) {
  ServerConfig config = small_config();
  config.max_item_bytes = 100'000;
  ServiceParts parts(config);
  const std::string png_file = png(1);
  const std::pair<std::string, ErrorCode> cases[] = {
      {"data:,", ErrorCode::invalid_argument},
      {"data:;base64,Zm9v!!", ErrorCode::invalid_argument},
      {"no-scheme", ErrorCode::invalid_argument},
      {"ftp://example.com/x", ErrorCode::invalid_argument},
      {data_url(png_file.substr(0, png_file.size() - 20)), ErrorCode::invalid_argument},
      {data_url("GIF89a" + std::string(64, '\0')), ErrorCode::invalid_argument},
      {data_url("8BPS" + std::string(64, '\0')), ErrorCode::unsupported_format},
      {data_url("plain text, renamed"), ErrorCode::unsupported_format},
      {data_url(png(1, 300, 300)), ErrorCode::too_large},
      {"file:///etc/passwd", ErrorCode::forbidden},
      {"http://127.0.0.1:9/x.png", ErrorCode::forbidden},
  };
  for (const auto& [url, code] : cases) {
    const Failure failure =
        failure_of([&] { parts.service->encode(request_for({url_item(url)})); });
    EXPECT_EQ(to_string(failure.code), to_string(code)) << url.substr(0, 60);
    EXPECT_EQ(failure.item, 0);
  }
  EXPECT_EQ(parts.controller->stats().entries_ready, 0U);
}

TEST(EncodeService, BadRowsAreAnErrorAndNeverCached) {
  for (const std::string failure : {"nan", "short", "error"}) {
    const auto store = memory_store();
    ServiceParts parts(
        small_config(), {store},
        std::make_shared<TestEncoder>("stub:dim=64,tokens=16,seed=1,fail=" + failure));
    EXPECT_EQ(failure_of([&] { encode(*parts.service, {1}); }).code, ErrorCode::internal)
        << failure;
    ASSERT_TRUE(parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
    EXPECT_EQ(parts.controller->stats().entries_ready, 0U);
    EXPECT_EQ(parts.controller->stats().entries_filling, 0U);
    EXPECT_EQ(store->health().entries.value_or(0), 0U);
  }
}

TEST(EncodeService, AMatchingDigestIsFineAndAnotherIsRefused) {
  ServiceParts parts;
  EncodeItem item = url_item(png_url(1));
  item.digest = sha256(png(1));
  EXPECT_EQ(parts.service->encode(request_for({item}))[0].source, Source::encoded);
  item.digest = sha256(png(2));
  EXPECT_EQ(failure_of([&] { parts.service->encode(request_for({item})); }).code,
            ErrorCode::invalid_argument);
}

TEST(EncodeService, ADigestAloneNeedsTrust) {
  ServiceParts parts;
  EncodeItem item;
  item.digest = sha256(png(1));
  encode(*parts.service, {1});
  EXPECT_EQ(failure_of([&] { parts.service->encode(request_for({item})); }).code,
            ErrorCode::forbidden);
}

TEST(EncodeService, ATrustedDigestFindsWhatTheBytesMadeAndMakesNothing) {
  ServerConfig config = small_config();
  config.trust_client_digests = true;
  const auto store = memory_store();
  EncodeItem item;
  item.digest = sha256(png(1));
  EmbeddingKey key;
  {
    ServiceParts parts(config, {store});
    const Failure absent = failure_of([&] { parts.service->encode(request_for({item})); });
    EXPECT_EQ(absent.code, ErrorCode::not_found);
    EXPECT_EQ(absent.item, 0);
    EXPECT_EQ(parts.controller->stats().entries_filling, 0U);
    EXPECT_EQ(parts.encoder->items, 0);
    key = encode(*parts.service, {1})[0].key;
    const auto found = parts.service->encode(request_for({item}));
    EXPECT_EQ(found[0].source, Source::local);
    EXPECT_EQ(found[0].key, key);
    ASSERT_TRUE(parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  }
  ServiceParts other(config, {store});
  const auto found = other.service->encode(request_for({item}));
  EXPECT_EQ(found[0].source, Source::store);
  EXPECT_EQ(found[0].key, key);
}

TEST(EncodeService, ADigestBesideItsOwnMediaIsFilledFromThere) {
  ServerConfig config = small_config();
  config.trust_client_digests = true;
  ServiceParts parts(config);
  EncodeItem digest;
  digest.digest = sha256(png(1));
  const auto replies = parts.service->encode(request_for({digest, url_item(png_url(1))}));
  EXPECT_EQ(rows_of(replies[0].view), golden(1));
  EXPECT_EQ(rows_of(replies[1].view), golden(1));
  EXPECT_EQ(parts.encoder->items, 1);
}

TEST(EncodeService, TenantsAndEpochsNeverMeet) {
  const auto store = memory_store();
  ServiceParts parts(small_config(), {store});
  const auto ask = [&](const std::string& tenant) {
    EncodeRequest request = request_for({url_item(png_url(1))});
    request.tenant = tenant;
    return parts.service->encode(std::move(request))[0].source;
  };
  EXPECT_EQ(ask("a"), Source::encoded);
  EXPECT_EQ(ask("b"), Source::encoded);
  EXPECT_EQ(ask(""), Source::encoded);
  EXPECT_EQ(ask("a"), Source::local);
  ASSERT_TRUE(parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  ServerConfig later = small_config();
  later.epoch = 1;
  ServiceParts abandoned(later, {store});
  EXPECT_EQ(encode(*abandoned.service, {1})[0].source, Source::encoded);
}

TEST(EncodeService, ProbesEncodeEachTimeAndAreNotCounted) {
  ServiceParts parts;
  encode(*parts.service, {1});
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (int i = 0; i < 3; ++i) parts.service->encode_probe({deadline, {}, {}});
  EXPECT_EQ(parts.encoder->items, 4);
  EXPECT_EQ(parts.service->encoder_totals().items, 1U);
  EXPECT_EQ(parts.controller->stats().lookups[1].miss, 1U);
  EXPECT_EQ(parts.controller->stats().entries_ready, 1U);
}

TEST(EncodeService, AProbeTellsABrokenEncoder) {
  for (const std::string failure : {"nan", "short", "error"}) {
    ServiceParts parts(small_config(), {}, std::make_shared<TestEncoder>("stub:fail=" + failure));
    EXPECT_EQ(failure_of([&] {
                parts.service->encode_probe({std::chrono::steady_clock::now() + patience, {}, {}});
              }).code,
              ErrorCode::internal);
    EXPECT_EQ(parts.service->encoder_totals().failures, 0U);
  }
}

TEST(EncodeService, ItemsOfOneRequestShareBatches) {
  ServerConfig config = small_config();
  config.max_batch_wait = std::chrono::seconds(20);
  config.max_batch_size = 4;
  ServiceParts parts(config);
  // A full batch does not wait; a request that went item by item would wait twenty seconds each.
  encode(*parts.service, {1, 2, 3, 4});
  EXPECT_EQ(parts.encoder->largest_batch, 4U);
  EXPECT_EQ(parts.encoder->batches, 1);
}

TEST(EncodeService, AStoreThatFailsCostsAnEncodeAndNothingElse) {
  const auto faulty = std::make_shared<FaultyStore>(memory_store());
  for (const auto op : {StoreOp::get, StoreOp::put, StoreOp::exist}) {
    faulty->add({.op = op, .fault = Fault::error});
  }
  ServiceParts parts(small_config(), {faulty});
  EXPECT_EQ(encode(*parts.service, {1, 2})[0].source, Source::encoded);
  EXPECT_EQ(encode(*parts.service, {1, 2})[1].source, Source::local);
}

TEST(EncodeService, AnItemLargerThanThePoolIsAnsweredUncached) {
  ServerConfig config = small_config();
  config.pool_size = 2 * config.page_size;
  ServiceParts parts(config, {}, std::make_shared<TestEncoder>("stub:dim=1024,tokens=64,seed=1"));
  const auto replies = encode(*parts.service, {1});
  EXPECT_FALSE(replies[0].view.pooled());
  EXPECT_EQ(replies[0].view.rows(), 64U);
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::encoded);
}

TEST(EncodeService, LeavesNothingPinnedOrFilling) {
  ServerConfig config = small_config();
  config.pool_size = 8 * config.page_size;
  ServiceParts parts(config, {memory_store()});
  std::vector<std::thread> clients;
  for (std::uint32_t client = 0; client < 6; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937 random(client);
      for (int round = 0; round < 25; ++round) {
        std::vector<EncodeItem> items;
        for (std::uint32_t i = 0; i < 1 + random() % 3; ++i) {
          items.push_back(url_item(png_url(static_cast<std::uint32_t>(random() % 12))));
        }
        if (random() % 5 == 0) items.push_back(url_item("data:,broken"));
        std::stop_source leave;
        EncodeRequest request = request_for(std::move(items));
        request.cancel = leave.get_token();
        if (random() % 5 == 0) leave.request_stop();
        try {
          parts.service->encode(std::move(request));
        } catch (const Error&) {
          // broken or cancelled, as asked for
        }
      }
    });
  }
  for (auto& client : clients) client.join();
  ASSERT_TRUE(eventually([&] { return parts.controller->stats().entries_filling == 0; }));
  ASSERT_TRUE(parts.controller->wait_for_puts(std::chrono::steady_clock::now() + patience));
  EXPECT_EQ(parts.controller->stats().bytes_pinned, 0U);
  parts.controller->check_invariants();
}

}  // namespace
}  // namespace vitrove::test
