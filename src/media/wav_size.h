// WAV files whose head was written before anybody knew how long the sound would be.
//
// Programs that write into a pipe cannot come back to the head; they leave a number there that
// means nothing. Such a sound goes up to the end of the file, and the demuxer is shown a head that
// says so: from there on the file is like any other.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "vitrove/media.h"

namespace vitrove {

// Where the file tells the size of its samples, and what it should say.
struct WavSize {
  std::size_t at = 0;
  std::array<std::byte, 4> bytes{};

  // Writes into a piece of the file that begins at `offset` what of these bytes lies there.
  void put(std::size_t offset, std::span<std::byte> piece) const;
};

// Nothing for other formats and for a size that is known, right or wrong. Throws
// Error{invalid_argument} when there is no sound but other chunks up to the end.
std::optional<WavSize> find_wav_size(std::span<const std::byte> file, MediaFormat format);

}  // namespace vitrove
