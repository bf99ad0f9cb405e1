// What doctor says of claims that work, that fail, and that are no claims at all.
#include "cli/claim_check.h"

#include <gtest/gtest.h>

#include "contract/valueless_store.h"
#include "vitrove/memory_store.h"

namespace vitrove::cli {
namespace {

const EmbeddingKey key{sha256("a key of the test")};

// Answers as told, to claims alone.
class ClaimStub final : public testing::ValuelessStore {
 public:
  struct Answers {
    StoreStatus first = StoreStatus::ok;
    StoreStatus second = StoreStatus::conflict;
    StoreStatus renewal = StoreStatus::ok;
    StoreStatus release = StoreStatus::ok;
  };
  explicit ClaimStub(Answers answers) : answers_(answers) {}

  StoreCapabilities capabilities() const override { return {.can_claim = true}; }
  StoreResult claim(const EmbeddingKey&, std::chrono::milliseconds, ClaimToken& token,
                    const StoreContext&) override {
    const StoreStatus status = claims_++ == 0 ? answers_.first : answers_.second;
    if (status == StoreStatus::ok) token.value = std::to_string(++held_);
    return {status};
  }
  StoreResult renew(const EmbeddingKey&, const ClaimToken&, std::chrono::milliseconds,
                    const StoreContext&) override {
    return {answers_.renewal};
  }
  StoreResult release(const EmbeddingKey&, const ClaimToken&, ClaimOutcome,
                      const StoreContext&) override {
    if (answers_.release == StoreStatus::ok) --held_;
    return {answers_.release};
  }
  int held() const { return held_; }

 private:
  const Answers answers_;
  int claims_ = 0;
  int held_ = 0;
};

// The one remark there is.
Remark only_remark(EmbeddingStore& store) {
  const Remarks remarks = remarks_on_claims(store, key);
  EXPECT_EQ(remarks.size(), 1U);
  return remarks.empty() ? Remark{Remark::Kind::note, "nothing"} : remarks.front();
}

TEST(ClaimCheck, SaysThatClaimsWorkAndLeavesNone) {
  const auto store = make_memory_store();
  const Remark remark = only_remark(*store);
  EXPECT_EQ(remark.kind, Remark::Kind::note);
  EXPECT_EQ(remark.words, "claims work");
  ClaimToken token;
  EXPECT_TRUE(store->claim(key, std::chrono::seconds(5), token, {}).ok());
}

TEST(ClaimCheck, AFailedClaimIsAWarning) {
  ClaimStub store({.first = StoreStatus::denied});
  const Remark remark = only_remark(store);
  EXPECT_EQ(remark.kind, Remark::Kind::warning);
  EXPECT_NE(remark.words.find("no claim could be made (denied)"), std::string::npos);
}

TEST(ClaimCheck, ARefusedRenewalIsAWarningAndTheClaimIsReleased) {
  ClaimStub store({.renewal = StoreStatus::denied});
  const Remark remark = only_remark(store);
  EXPECT_EQ(remark.kind, Remark::Kind::warning);
  EXPECT_NE(remark.words.find("could not be renewed (denied)"), std::string::npos);
  EXPECT_EQ(store.held(), 0);
}

TEST(ClaimCheck, ARefusedReleaseIsAWarning) {
  ClaimStub store({.release = StoreStatus::timeout});
  const Remark remark = only_remark(store);
  EXPECT_EQ(remark.kind, Remark::Kind::warning);
  EXPECT_NE(remark.words.find("could not be released (timeout)"), std::string::npos);
}

TEST(ClaimCheck, TwoHoldersAtOnceAreBadAndBothReleased) {
  ClaimStub store({.second = StoreStatus::ok});
  EXPECT_EQ(only_remark(store).kind, Remark::Kind::bad);
  EXPECT_EQ(store.held(), 0);
}

TEST(ClaimCheck, ASecondClaimThatFailsOtherwiseIsAWarning) {
  ClaimStub store({.second = StoreStatus::io_error});
  EXPECT_EQ(only_remark(store).kind, Remark::Kind::warning);
}

}  // namespace
}  // namespace vitrove::cli
