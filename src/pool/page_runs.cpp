#include <algorithm>

#include "vitrove/page_pool.h"

namespace vitrove {

std::uint64_t PageRuns::pages() const {
  std::uint64_t pages = 0;
  for (const Segment& segment : segments) pages += segment.run.count;
  return pages;
}

std::uint64_t PageRuns::bytes() const {
  std::uint64_t bytes = 0;
  for (const Segment& segment : segments) bytes += segment.bytes;
  return bytes;
}

bool PageRuns::set_rows(std::uint64_t rows, std::uint64_t row_bytes) {
  if (rows == 0 || row_bytes == 0) return false;
  std::vector<std::uint32_t> rows_in(segments.size());
  std::uint64_t rest = rows;
  for (std::size_t i = 0; i < segments.size() && rest > 0; ++i) {
    const std::uint64_t here = std::min(rest, segments[i].bytes / row_bytes);
    rest -= here;
    // A next row that starts here and does not end here would straddle two runs.
    if (rest > 0 && segments[i].bytes % row_bytes != 0) return false;
    rows_in[i] = static_cast<std::uint32_t>(here);
  }
  if (rest > 0) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) segments[i].rows = rows_in[i];
  return true;
}

}  // namespace vitrove
