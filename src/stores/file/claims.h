// Claims of a file store, see file_store.h: one small file a claim.
//
//   vitrove-claim 1 TOKEN HOST PID TTL NUMBER      TTL in milliseconds, of fixed width
//
// The writer's TOKEN and the NUMBER together are the claim's token.
//
// The file of a claim that was released is kept under a temporary name, for the next one: claims
// come and go with every encode, and file systems may be slow to make files where many were removed
// (ext4 without a journal passes over whatever was removed in the last five minutes).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stores/file/temporary_file.h"

namespace vitrove::file {

// Thread-safe.
class Claims {
 public:
  // All outlive this.
  Claims(const Layout& layout, TemporaryFiles& temporaries, const ProcessIdentity& self)
      : layout_(layout), temporaries_(temporaries), self_(self) {}
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  StoreResult claim(const EmbeddingKey& key, std::chrono::milliseconds ttl, ClaimToken& token);
  StoreResult renew(const EmbeddingKey& key, const ClaimToken& token,
                    std::chrono::milliseconds ttl);
  StoreResult release(const EmbeddingKey& key, const ClaimToken& token);

 private:
  // Where the claim is now, under a name of our own; empty when somebody else was there first.
  // False when another claim stands there.
  std::pair<bool, std::string> take_away(const EmbeddingKey& key, const std::string& path,
                                         const std::string& token);
  // Only of files that nobody else has held: the late holder of another might write to it.
  void keep_spare(std::string path);
  std::optional<TemporaryFile> take_spare();

  const Layout& layout_;
  TemporaryFiles& temporaries_;
  const ProcessIdentity& self_;
  std::atomic<std::uint64_t> number_{0};
  std::mutex mutex_;  // no spare comes or goes while a claim is renewed
  std::vector<std::string> spares_;
};

// Whether nobody holds the claim of this name any more; of what cannot be looked at, false.
bool is_claim_over(int directory_fd, const char* name, const ProcessIdentity& self);

}  // namespace vitrove::file
