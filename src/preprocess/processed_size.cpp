#include "preprocess/processed_size.h"

#include "vitrove/error.h"

namespace vitrove {

void refuse_processed_size(const std::string& what, std::uint64_t limit,
                           const ProcessedUnit& unit) {
  throw Error(ErrorCode::too_large, what + " for the model, beyond the limit of " +
                                        std::to_string(limit) + " processed " + unit.name + " (" +
                                        unit.option + ")");
}

void check_processed_bound(std::uint64_t by_operator, std::uint64_t least,
                           const ProcessedUnit& unit) {
  if (by_operator == 0 || by_operator >= least) return;
  throw Error(ErrorCode::invalid_argument,
              std::string(unit.option) + " " + std::to_string(by_operator) + " is less than the " +
                  std::to_string(least) + " " + unit.name +
                  " that the model makes of the smallest item by its own configuration");
}

}  // namespace vitrove
