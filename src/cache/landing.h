// Landing: where a value from a store comes down. A header slot, and pages or staging for the
// payload; all of it lies in the arena, and goes back to the pool unless somebody takes it over.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache/cache_core.h"

namespace vitrove {

class Landing {
 public:
  // Nothing when there is no room. `row_bytes`: what runs are cut by.
  static std::optional<Landing> in_pages(CacheCore& core, std::uint64_t payload_bytes,
                                         std::uint64_t row_bytes,
                                         std::optional<Modality> modality = {}) {
    auto header = core.pool().borrow_header_slot();
    if (!header) return std::nullopt;
    auto runs = core.allocate(payload_bytes, row_bytes, modality);
    if (!runs) return std::nullopt;
    PageLease pages(core.pool(), std::move(*runs));
    Landing landing(std::move(*header), payload_bytes);
    landing.pages_ = std::move(pages);
    for (const auto& segment : landing.pages_.runs().segments) {
      landing.buffers_.push_back(core.pool().segment_bytes(segment));
    }
    return landing;
  }
  static std::optional<Landing> in_staging(CacheCore& core, std::uint64_t payload_bytes) {
    auto header = core.pool().borrow_header_slot();
    if (!header) return std::nullopt;
    auto staging = core.pool().borrow_staging(payload_bytes);
    if (!staging) return std::nullopt;
    Landing landing(std::move(*header), payload_bytes);
    landing.staging_ = std::move(*staging);
    landing.buffers_.push_back(landing.staging_.bytes().first(payload_bytes));
    return landing;
  }

  // Header first.
  std::span<const MutableBuffer> buffers() const { return buffers_; }
  std::uint64_t value_bytes() const { return value_header_size + payload_bytes_; }
  bool in_pages() const { return static_cast<bool>(pages_); }
  PageRuns& runs() { return pages_.runs(); }
  PageRuns take_pages() { return pages_.take(); }

  // The first `bytes` of the payload.
  std::vector<std::byte> copy_payload(std::uint64_t bytes) const {
    std::vector<std::byte> copy;
    copy.reserve(bytes);
    for (const MutableBuffer& buffer : buffers().subspan(1)) {
      const auto part = buffer.first(std::min<std::uint64_t>(buffer.size(), bytes - copy.size()));
      copy.insert(copy.end(), part.begin(), part.end());
    }
    return copy;
  }

 private:
  Landing(PagePool::HeaderSlot header, std::uint64_t payload_bytes)
      : payload_bytes_(payload_bytes), header_(std::move(header)) {
    // So that a store which says ok and writes nothing is found out, whatever lay here before.
    std::ranges::fill(header_.bytes(), std::byte{0});
    buffers_.push_back(header_.bytes());
  }

  std::uint64_t payload_bytes_;
  PagePool::HeaderSlot header_;
  PageLease pages_;
  PagePool::Staging staging_;
  std::vector<MutableBuffer> buffers_;
};

}  // namespace vitrove
