// Where an MP3 ends. Its frames tell their own lengths, and nothing tells how many there are: what
// taggers, encoders and downloads leave behind the last one is no sound, and no damage.
#pragma once

#include <cstddef>
#include <span>

namespace vitrove {

// The file up to the end of its last frame. It stays whole where the frames are not understood, or
// where more of them follow something else, which is damage for the decoder to find. Throws
// Error{invalid_argument} when the last frame is cut.
std::span<const std::byte> without_mp3_tail(std::span<const std::byte> file);

}  // namespace vitrove
