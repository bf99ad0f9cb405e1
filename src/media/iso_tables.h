// What the sample tables of an MP4 or QuickTime file claim.
//
// A box of twenty bytes can claim millions of samples of one size, and the demuxer makes an index
// entry of each before it looks for their bytes. So the claims are added up first, and held to a
// byte a sample.
#pragma once

#include <cstddef>
#include <span>

#include "vitrove/media.h"

namespace vitrove {

// Throws Error: too_large for more samples than any clip has, invalid_argument for more than the
// file can hold, unsupported_format for a compressed header, whose claims cannot be seen. Whatever
// else is wrong is left to the demuxer.
void check_iso_tables(std::span<const std::byte> file, MediaFormat format);

}  // namespace vitrove
