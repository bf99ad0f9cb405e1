#include "preprocess/processed_size.h"

#include "vitrove/error.h"

namespace vitrove {

void refuse_processed_size(const std::string& what, std::uint64_t limit, const std::string& unit) {
  throw Error(ErrorCode::too_large, what + " for the model, beyond the limit of " +
                                        std::to_string(limit) + " processed " + unit);
}

}  // namespace vitrove
