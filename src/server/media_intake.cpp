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

MediaIntake::MediaIntake(FetchPolicy policy, const Bounds& bounds)
    : max_request_bytes_(std::min(bounds.request, bounds.all)),
      fetcher_(within(std::move(policy), bounds.all)),
      allowance_(bounds.all) {}

void MediaIntake::throw_too_large() const {
  throw Error(ErrorCode::too_large, "the media of this request exceed the limit of " +
                                        std::to_string(max_request_bytes_) + " bytes in all");
}

MediaBytes MediaIntake::fetch(std::string_view url, const RequestContext& context,
                              Tally& of_request) const {
  const auto received = std::make_shared<Received>();
  received->share = ByteAllowance::Share(allowance_, 0);
  const auto charge = [&](std::uint64_t total) {
    const std::uint64_t charged = received->share.bytes();
    if (total <= charged) return;
    const std::uint64_t more = total - charged;
    if (of_request.received > max_request_bytes_) throw_too_large();
    if (received->share.grow(more)) {
      of_request.charged += more;
      return;
    }
    if (of_request.charged + more > max_request_bytes_) throw_too_large();
    throw Error(ErrorCode::unavailable, "too much media is being received: the limit is " +
                                            std::to_string(allowance_.limit()) +
                                            " bytes in flight, try again later");
  };
  received->bytes = fetcher_.fetch(url, context.deadline, context.cancel, charge);
  const std::uint64_t size = received->bytes.size();
  if (of_request.received.fetch_add(size) + size > max_request_bytes_) throw_too_large();
  return {received, &received->bytes};
}

}  // namespace vitrove
