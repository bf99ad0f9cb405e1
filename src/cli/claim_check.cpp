#include "cli/claim_check.h"

#include <chrono>
#include <string>
#include <utility>

#include "cli/store_access.h"

namespace vitrove::cli {
namespace {

constexpr std::chrono::seconds claim_lifetime{5};  // as servers ask for
constexpr std::chrono::seconds claim_patience{10};

StoreContext context() {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + claim_patience;
  return context;
}

Remark warning(const std::string& what, const StoreResult& result, const std::string& so) {
  return {Remark::Kind::warning, what + " (" + words_for(result) + "): " + so};
}

}  // namespace

Remarks remarks_on_claims(EmbeddingStore& store, const EmbeddingKey& key) {
  if (!store.capabilities().can_claim) return {};
  ClaimToken token;
  const StoreResult claimed = store.claim(key, claim_lifetime, token, context());
  if (!claimed.ok()) {
    return {warning("no claim could be made", claimed,
                    "servers that share this store encode the same at the same time")};
  }
  ClaimToken second;
  const StoreResult again = store.claim(key, claim_lifetime, second, context());
  const StoreResult renewed = store.renew(key, token, claim_lifetime, context());
  const StoreResult released = store.release(key, token, ClaimOutcome::not_stored, context());
  Remarks remarks;
  if (again.ok()) {
    store.release(key, second, ClaimOutcome::not_stored, context());
    remarks.push_back({Remark::Kind::bad, "two could claim the same key at once"});
  } else if (again.status != StoreStatus::conflict) {
    remarks.push_back(warning("a second claim failed, but not as taken", again,
                              "servers do not wait for each other"));
  }
  if (!renewed.ok()) {
    remarks.push_back(warning("a claim could not be renewed", renewed,
                              "what takes more than 5 s to encode, others encode too"));
  }
  if (!released.ok()) {
    remarks.push_back(warning("a claim could not be released", released,
                              "each keeps others from its key until its 5 s are over"));
  }
  if (remarks.empty()) remarks.push_back({Remark::Kind::note, "claims work"});
  return remarks;
}

}  // namespace vitrove::cli
