#include "server/media_intake.h"

#include <algorithm>
#include <string>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

struct Received {
  ByteAllowance::Share share;
  std::vector<std::byte> bytes;
};

FetchPolicy within(FetchPolicy policy, std::uint64_t max_bytes) {
  policy.max_item_bytes = std::min(policy.max_item_bytes, max_bytes);
  return policy;
}

}  // namespace

MediaIntake::MediaIntake(FetchPolicy policy, std::uint64_t max_bytes)
    : max_bytes_(max_bytes),
      fetcher_(within(std::move(policy), max_bytes)),
      allowance_(max_bytes) {}

MediaBytes MediaIntake::fetch(std::string_view url, const RequestContext& context,
                              Tally& of_request) const {
  const auto received = std::make_shared<Received>();
  received->share = ByteAllowance::Share(allowance_, 0);
  const auto charge = [&](std::uint64_t total) {
    const std::uint64_t charged = received->share.bytes();
    if (total <= charged) return;
    const std::uint64_t more = total - charged;
    if (!received->share.grow(more)) {
      if (of_request + more <= max_bytes_) {
        throw Error(ErrorCode::unavailable, "too much media is being received, try again later");
      }
      throw Error(ErrorCode::too_large, "the media of this request exceed the limit of " +
                                            std::to_string(max_bytes_) + " bytes in all");
    }
    of_request += more;
  };
  received->bytes = fetcher_.fetch(url, context.deadline, context.cancel, charge);
  return {received, &received->bytes};
}

}  // namespace vitrove
