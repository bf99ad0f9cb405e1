// The JSON body of POST /encode, and the request target: whatever bytes a client sends are parsed
// within their limits or refused with an Error whose message stays short.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/check.h"
#include "server/encode_body.h"
#include "server/http_message.h"
#include "vitrove/error.h"

namespace {

using vitrove::fuzz::check;

constexpr std::uint32_t max_items = 8;
constexpr std::size_t max_message = 256;

void try_body(std::string_view text) {
  std::string req_id = "made-up";
  try {
    const vitrove::EncodeBody body = vitrove::parse_encode_body(text, max_items, req_id);
    check(!body.items.empty() && body.items.size() <= max_items, "between one and max_items items");
    check(body.part_idx < body.num_parts, "the part is one of the parts");
    for (const auto& item : body.items) {
      check(!item.url.empty() || item.digest.has_value(), "an item has media or a digest");
    }
  } catch (const vitrove::Error& error) {
    check(std::string_view(error.what()).size() <= max_message, "messages are short");
    check(error.item() < static_cast<int>(max_items), "the item at fault is in the request");
  }
  check(vitrove::is_valid_req_id(req_id), "the request id can be echoed");
}

void try_target(std::string_view target) {
  vitrove::HttpRequest request;
  if (vitrove::parse_target(target, request)) check(!request.path.empty(), "a target has a path");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_body(text);
  try_target(text);
  return 0;
}
