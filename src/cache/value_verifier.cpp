#include "cache/value_verifier.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vitrove {
namespace {

// Large enough for the checksum's speed, small enough for the second-level cache.
constexpr std::size_t verified_at_once = 256 * 1024;

}  // namespace

void ValueVerifier::FiniteScan::update(ConstBuffer bytes) {
  const std::size_t element = element_size(dtype_);
  if (carried_ > 0) {
    const std::size_t missing = std::min(element - carried_, bytes.size());
    std::memcpy(carry_.data() + carried_, bytes.data(), missing);
    carried_ += missing;
    bytes = bytes.subspan(missing);
    if (carried_ < element) return;
    finite_ = finite_ && all_finite(std::span(carry_).first(element), dtype_);
    carried_ = 0;
  }
  const std::size_t rest = bytes.size() % element;
  finite_ = finite_ && all_finite(bytes.first(bytes.size() - rest), dtype_);
  if (rest > 0) std::memcpy(carry_.data(), bytes.data() + (bytes.size() - rest), rest);
  carried_ = rest;
}

ValueVerifier::ValueVerifier(WantedValue wanted, std::span<const MutableBuffer> buffers)
    : wanted_(wanted), buffers_(buffers) {
  for (const MutableBuffer& buffer : buffers) total_ += buffer.size();
}

void ValueVerifier::on_piece(std::uint64_t offset, ConstBuffer piece) noexcept {
  if (offset == 0) {
    seen_ = 0;
    trusted_ = true;
  }
  // A store that breaks the contract is read again afterwards.
  if (!trusted_ || offset != seen_ || !lies_in_buffers(offset, piece)) {
    trusted_ = false;
    return;
  }
  seen_ += piece.size();
  if (offset >= value_header_size) {
    if (value_.reject == Reject::none) take_payload(piece);
  } else if (seen_ == value_header_size) {
    begin_payload();
  }
}

// A piece never spans two buffers, and the header is a buffer of its own.
bool ValueVerifier::lies_in_buffers(std::uint64_t offset, ConstBuffer piece) const {
  for (const MutableBuffer& buffer : buffers_) {
    if (offset < buffer.size()) {
      return piece.data() == buffer.data() + offset && piece.size() <= buffer.size() - offset;
    }
    offset -= buffer.size();
  }
  return false;
}

void ValueVerifier::begin_payload() {
  value_.reject = check_header();
  checksum_.finish();  // starts anew
  scan_.begin(value_.header.dtype);
  rows_left_ = value_.header.payload_bytes();
}

Reject ValueVerifier::check_header() {
  ValueHeader& header = value_.header;
  header = {};
  if (const Reject reject = parse_header(buffers_.front(), total_, header);
      reject != Reject::none) {
    return reject;
  }
  if (header.key != wanted_.key) return Reject::key;
  if (wanted_.tenant && header.tenant != *wanted_.tenant) return Reject::tenant;
  return wanted_.expected ? check_value(header, *wanted_.expected) : Reject::none;
}

void ValueVerifier::take_payload(ConstBuffer piece) {
  while (!piece.empty()) {
    const ConstBuffer hot = piece.first(std::min(piece.size(), verified_at_once));
    checksum_.update(hot);
    const ConstBuffer rows = hot.first(std::min<std::uint64_t>(hot.size(), rows_left_));
    scan_.update(rows);
    rows_left_ -= rows.size();
    piece = piece.subspan(hot.size());
  }
}

VerifiedValue ValueVerifier::finish() {
  if (total_ < value_header_size) {
    value_.reject = Reject::truncated;
    return std::move(value_);
  }
  if (!trusted_ || seen_ != total_) {
    begin_payload();
    for (const MutableBuffer& buffer : buffers_.subspan(1)) {
      if (value_.reject == Reject::none) take_payload(buffer);
    }
  }
  if (value_.reject != Reject::none) return std::move(value_);
  if (checksum_.finish() != value_.header.payload_checksum) {
    value_.reject = Reject::payload_checksum;
  } else if (!scan_.finite()) {
    value_.reject = Reject::not_finite;
  } else if (!read_side()) {
    value_.reject = Reject::side_data;
  }
  return std::move(value_);
}

bool ValueVerifier::read_side() {
  std::vector<std::byte>& bytes = value_.side_bytes;
  bytes.reserve(value_.header.side_bytes);
  std::uint64_t skip = value_header_size + value_.header.payload_bytes();
  for (const MutableBuffer& buffer : buffers_) {
    const std::uint64_t skipped = std::min<std::uint64_t>(skip, buffer.size());
    skip -= skipped;
    bytes.insert(bytes.end(), buffer.begin() + static_cast<std::ptrdiff_t>(skipped), buffer.end());
  }
  auto side = SideData::decode(bytes);
  const bool is_alias = value_.header.kind == ValueKind::alias;
  if (!side || is_alias != side->alias_target.has_value()) return false;
  value_.side = std::move(*side);
  return true;
}

}  // namespace vitrove
