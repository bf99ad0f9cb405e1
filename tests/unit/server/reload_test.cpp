// Models that are swapped while the service runs.
#include <future>
#include <stop_token>
#include <thread>

#include "support.h"

namespace vitrove::test {
namespace {

// B38
TEST(Reload, AReloadedModelHasKeysAndRowsOfItsOwn) {
  ServiceParts parts;
  const auto old = encode(*parts.service, {1});
  const EncoderInfo info = parts.service->reload("stub:dim=64,tokens=16,seed=2");
  EXPECT_EQ(info.fingerprint, parts.service->encoder_info().fingerprint);
  const auto fresh = encode(*parts.service, {1});
  EXPECT_EQ(fresh[0].source, Source::encoded);
  EXPECT_NE(fresh[0].key, old[0].key);
  EXPECT_NE(rows_of(fresh[0].view), rows_of(old[0].view));
  parts.service->swap_encoder(parts.encoder);
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::local);
}

TEST(Reload, ARunningRequestEndsWithTheModelItBeganWith) {
  ServiceParts parts;
  parts.encoder->gate.close();
  std::vector<EncodedItem> replies;
  std::thread client([&] { replies = encode(*parts.service, {1}); });
  ASSERT_TRUE(parts.encoder->gate.wait_for_waiting(1));
  parts.service->reload("stub:dim=32,tokens=4,seed=2");
  EXPECT_EQ(encode(*parts.service, {1})[0].view.dim(), 32U);
  parts.encoder->gate.open();
  client.join();
  EXPECT_EQ(replies[0].view.dim(), 64U);
  EXPECT_EQ(rows_of(replies[0].view), golden(1));
}

// A session's end takes long, and whoever lets go of it last may be an I/O thread.
TEST(Reload, AModelEndsOnAThreadOfItsOwn) {
  class Mortal final : public Encoder {
   public:
    explicit Mortal(std::promise<std::thread::id>& end) : end_(end) {}
    ~Mortal() override { end_.set_value(std::this_thread::get_id()); }
    const EncoderInfo& info() const override { return inner_->info(); }
    const Preprocessor& preprocessor() const override { return inner_->preprocessor(); }
    std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override {
      return inner_->token_count(item);
    }
    std::string batch_class(const PreprocessedItem& item) const override {
      return inner_->batch_class(item);
    }
    std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override {
      return inner_->encode(batch);
    }

   private:
    std::promise<std::thread::id>& end_;
    std::unique_ptr<Encoder> inner_ = make_encoder("stub:dim=64,tokens=16,seed=7");
  };

  ServiceParts parts;
  std::promise<std::thread::id> end;
  auto ended = end.get_future();
  parts.service->swap_encoder(std::make_shared<Mortal>(end));
  encode(*parts.service, {1});
  parts.service->swap_encoder(parts.encoder);
  ASSERT_EQ(ended.wait_for(patience), std::future_status::ready);
  EXPECT_NE(ended.get(), std::this_thread::get_id());
}

// Each is a whole model in memory.
TEST(Reload, ModelsThatDoNotEndAreNotFollowedByEverMore) {
  ServiceParts parts;
  parts.encoder->gate.close();
  std::stop_source leave;
  std::thread client([&] {
    const auto gone = failure_of([&] {
      EncodeRequest request = request_for({url_item(png_url(1))});
      request.cancel = leave.get_token();
      parts.service->encode(std::move(request));
    });
    EXPECT_EQ(gone.code, ErrorCode::cancelled);
  });
  ASSERT_TRUE(parts.encoder->gate.wait_for_waiting(1));
  leave.request_stop();
  client.join();
  const auto reload = [&] { parts.service->reload("stub:dim=64,tokens=16,seed=2"); };
  // Those that follow may end before its turn to end has come.
  const auto is_refused = [&] {
    try {
      reload();
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      return true;
    }
  };
  EXPECT_TRUE(eventually(is_refused));
  parts.encoder->gate.open();
  EXPECT_TRUE(eventually([&] { return !is_refused(); }));
}

TEST(Reload, AFailedReloadKeepsTheOldModel) {
  ServiceParts parts;
  encode(*parts.service, {1});
  EXPECT_EQ(failure_of([&] { parts.service->reload("stub:wings=2"); }).code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(encode(*parts.service, {1})[0].source, Source::local);
}

TEST(Reload, CountersGoOnAcrossReloads) {
  ServiceParts parts;
  encode(*parts.service, {1, 2});
  parts.service->reload("stub:dim=64,tokens=16,seed=2");
  encode(*parts.service, {1});
  EXPECT_EQ(parts.service->encoder_totals().items, 3U);
}

}  // namespace
}  // namespace vitrove::test
