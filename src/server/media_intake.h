// MediaIntake: fetches media within a bound on the bytes that all requests hold at a time.
//
// Limits an item and a request do not bound many of them (field cases B65, B83): a request of a few
// hundred bytes can name gigabytes. So what is received is charged to one allowance as it arrives,
// and gives its share back when the last holder of the bytes lets go.
//
// Nobody waits for room: a request that held some of its items while it waited for the others could
// wait for another one that does the same. data: URLs are not charged; they came in a body, which
// is. They do count for the bound on one request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "server/reply_budget.h"
#include "vitrove/embedding_cache_controller.h"
#include "vitrove/fetch.h"

namespace vitrove {

using MediaBytes = std::shared_ptr<const std::vector<std::byte>>;

class MediaIntake {
 public:
  // What one request has received so far.
  struct Tally {
    std::atomic<std::uint64_t> received = 0;  // whole items
    std::atomic<std::uint64_t> charged = 0;   // with room taken for what is on its way
  };

  struct Bounds {
    std::uint64_t all;      // bytes of all requests at a time
    std::uint64_t request;  // of one
  };

  // Outlives the bytes it hands out.
  MediaIntake(FetchPolicy policy, const Bounds& bounds);

  // Throws Error: {unavailable} when the others leave no room, {too_large} when this request alone
  // would pass a bound, and what MediaFetcher throws.
  MediaBytes fetch(std::string_view url, const RequestContext& context, Tally& of_request) const;

  std::uint64_t held() const { return allowance_.used(); }

 private:
  [[noreturn]] void throw_too_large() const;

  const std::uint64_t max_request_bytes_;
  const MediaFetcher fetcher_;
  mutable ByteAllowance allowance_;
};

}  // namespace vitrove
