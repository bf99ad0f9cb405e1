#include "server/reply_budget.h"

#include <string>

#include "vitrove/error.h"

namespace vitrove {

bool ByteAllowance::take(std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

bool ByteAllowance::take_existing(std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (used >= limit_) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

bool ReplyBudget::admit_pinned(const EmbeddingView& view, ByteAllowance::Share& share) {
  if (!view.pooled() || !pinned_.take(view.bytes())) return false;
  share = ByteAllowance::Share(pinned_, view.bytes());
  return true;
}

std::vector<ByteAllowance::Share> ReplyBudget::admit(std::span<EmbeddingView* const> views) {
  std::vector<ByteAllowance::Share> shares;
  shares.reserve(views.size());
  for (EmbeddingView* view : views) {
    ByteAllowance::Share share;
    if (admit_pinned(*view, share)) {
      shares.push_back(std::move(share));
      continue;
    }
    const std::uint64_t bytes = view->bytes();
    const bool copied = view->pooled() ? copied_.take(bytes) : copied_.take_existing(bytes);
    if (!copied) {
      throw Error(ErrorCode::unavailable,
                  "too many replies are on their way to slow readers: the limit is " +
                      std::to_string(copied_.limit()) + " bytes in all");
    }
    shares.emplace_back(copied_, bytes);
    if (view->pooled()) view->detach();
  }
  return shares;
}

}  // namespace vitrove
