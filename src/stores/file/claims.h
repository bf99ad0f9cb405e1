// Claims of a file store, see file_store.h: one small file a claim.
//
//   vitrove-claim 1 TOKEN HOST PID TTL NUMBER      TTL in milliseconds, of fixed width
//
// The writer's TOKEN and the NUMBER together are the claim's token.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "stores/file/temporary_file.h"

namespace vitrove::file {

// Thread-safe.
class Claims {
 public:
  // All outlive this.
  Claims(const Layout& layout, TemporaryFiles& temporaries, const ProcessIdentity& self)
      : layout_(layout), temporaries_(temporaries), self_(self) {}

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token);
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token,
                    std::chrono::milliseconds ttl);
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token);

 private:
  bool take_away(const EmbeddingKey& key, const std::string& path, const std::string& token);

  const Layout& layout_;
  TemporaryFiles& temporaries_;
  const ProcessIdentity& self_;
  std::atomic<std::uint64_t> number_{0};
};

// Whether nobody holds the claim of this name any more; of what cannot be looked at, false.
bool is_claim_over(int directory_fd, const char* name, const ProcessIdentity& self);

}  // namespace vitrove::file
