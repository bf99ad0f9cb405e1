// The JSON body of POST /encode.
//
// Every field's type and range is checked, and an unknown field is refused by name: a client's own
// id such as `uuid` would otherwise seem to work (field case B24). An item's mm_processor_kwargs
// are laid over the request's, name by name, and neither may be longer than 16 KiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/encode_service.h"

namespace vitrove {

enum class ReturnForm : std::uint8_t { metadata, safetensors };

struct EncodeBody {
  std::string req_id;  // empty when the client gave none
  std::vector<EncodeItem> items;
  std::uint32_t num_parts = 1;
  std::uint32_t part_idx = 0;
  ReturnForm form = ReturnForm::metadata;
};

// Throws Error{invalid_argument} naming the field, or {too_large} beyond max_items and what so many
// items have at most. When the
// request names itself, `req_id` is set even if a later field is bad.
EncodeBody parse_encode_body(std::string_view text, std::uint32_t max_items, std::string& req_id);

}  // namespace vitrove
