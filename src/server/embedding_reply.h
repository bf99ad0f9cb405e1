// Embeddings as replies: JSON metadata, or a safetensors file whose rows go from the pool's pages
// straight to the socket.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/encode_service.h"
#include "server/http_message.h"
#include "server/reply_budget.h"

namespace vitrove {

struct ReplyFrame {
  std::string req_id;
  std::uint32_t num_parts = 1;
  std::uint32_t part_idx = 0;
};

// Gives the pins back at once.
HttpResponse metadata_reply(const ReplyFrame& frame, std::span<const EncodedItem> items);

// Takes the pins along; throws Error{unavailable} when the budget has no room.
HttpResponse safetensors_reply(const ReplyFrame& frame, std::vector<EncodedItem> items,
                               ReplyBudget& budget);

// The same for one item that need not be copied; nothing when the budget of pins is used up. The
// reply shares the item, so that the caller can still count it.
std::optional<HttpResponse> pinned_safetensors_reply(const ReplyFrame& frame,
                                                     std::shared_ptr<const EncodedItem> item,
                                                     ReplyBudget& budget);

}  // namespace vitrove
