#include <string>

#include "pool/policies/gdsf.h"
#include "pool/policies/lru.h"
#include "pool/policies/modality_shares.h"
#include "pool/policies/s3fifo.h"
#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

std::vector<std::string_view> eviction_policies() { return {"lru", "s3fifo", "gdsf"}; }

std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name) {
  if (name == "lru") return std::make_unique<LruPolicy<>>();
  if (name == "s3fifo") return std::make_unique<S3FifoPolicy>();
  if (name == "gdsf") return std::make_unique<GdsfPolicy>();
  std::string known;
  for (const std::string_view policy : eviction_policies()) {
    known += known.empty() ? "" : ", ";
    known += policy;
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown eviction policy \"" + std::string(name) + "\"; known are: " + known);
}

std::unique_ptr<EvictionPolicy> make_eviction_policy(std::string_view name,
                                                     std::span<const ModalityShare> shares,
                                                     std::uint64_t pool_bytes) {
  if (shares.empty()) return make_eviction_policy(name);
  return std::make_unique<ModalityShares>(name, shares, pool_bytes);
}

}  // namespace vitrove
