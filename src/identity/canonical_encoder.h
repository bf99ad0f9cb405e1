// The typed, length-framed byte encoding under every digest that names something (documented in
// vitrove/embedding_key.h). Each item says its type and its length, so that no two different
// sequences of items encode alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vitrove/digest.h"
#include "vitrove/params.h"

namespace vitrove {

class CanonicalEncoder {
 public:
  void boolean(bool value);
  void natural(std::uint64_t value);
  void integer(std::int64_t value);
  // Throws Error{invalid_argument} on NaN, which equals nothing; -0.0 is written as 0.0.
  void real(double value);
  void text(std::string_view value);
  void digest(const Digest256& value);
  // The head of a byte string whose `length` bytes follow from elsewhere.
  void bytes_head(std::uint64_t length);
  void list_head(std::uint64_t items);
  // `pairs` times a text and an item, in rising byte order of the texts.
  void map_head(std::uint64_t pairs);
  void params(const ResolvedParams& params);

  std::span<const std::byte> view() const { return std::as_bytes(std::span(out_)); }
  std::string take() { return std::move(out_); }
  void clear() { out_.clear(); }

 private:
  void head(char tag, std::uint64_t number);
  void value(const ParamValue& value);

  std::string out_;
};

}  // namespace vitrove
