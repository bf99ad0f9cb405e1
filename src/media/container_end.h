// Whether a container is there to its end, where the demuxers do not care.
#pragma once

#include <cstddef>
#include <span>

namespace vitrove {

// Matroska and WebM: the segment is as long as it says, if it does. Throws the error for damage.
void check_matroska_end(std::span<const std::byte> file);

// MP4 and QuickTime: whether a box goes on behind the end of the file. Players take such files for
// what is there, so it says why nothing is found, and is no reason to refuse what is.
bool is_iso_cut(std::span<const std::byte> file);

}  // namespace vitrove
