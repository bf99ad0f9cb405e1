// Side data as somebody who can write to a store may have made it.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fuzz/check.h"
#include "vitrove/side_data.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using vitrove::SideData;
  using vitrove::fuzz::check;

  const auto input = std::as_bytes(std::span(data, size));
  const auto decoded = SideData::decode(input);
  if (!decoded) return 0;

  check(input.size() <= vitrove::max_side_bytes, "accepted side data is bounded");
  check(decoded->timestamps.size() <= input.size() / 8, "no more is allocated than came in");
  for (const double time : decoded->timestamps) check(std::isfinite(time), "times are finite");

  const auto encoded = decoded->encode();
  check(encoded.size() == decoded->encoded_size(), "encoded_size() is exact");
  check(SideData::decode(encoded) == decoded, "what was accepted comes back");
  check(encoded.size() <= input.size(), "nothing is added");
  if (encoded.size() == input.size()) {  // no records were skipped
    check(std::ranges::equal(encoded, input), "side data has one spelling");
  }
  return 0;
}
