// How large the pictures in a coded stream are, by the stream's own word, told without decoding it.
//
// A container may call a picture small and hold a large one, which a decoder then makes room for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vitrove {

struct CodedSize {
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t pixels() const { return width * height; }
};

// The larger one, by its pixels.
CodedSize larger(CodedSize a, CodedSize b);

// The largest of all sequence headers among AV1's units (OBUs).
CodedSize av1_size(std::span<const std::byte> units);

// The size that an HEVC unit gives, when it is a sequence parameter set.
CodedSize hevc_unit_size(std::span<const std::byte> unit);

// The largest of all units, each after four bytes that tell its length.
CodedSize hevc_size(std::span<const std::byte> units);

}  // namespace vitrove
