// Audio: from the bytes of a file to mono samples at the rate that a model wants.
//
// Containers are WAV (RF64), FLAC, MP3, Ogg, AAC (ADTS), and the sound of MP4 (M4A), QuickTime,
// WebM and Matroska files; codecs PCM, FLAC, ALAC, MP3, AAC, Vorbis, Opus. Decoding is FFmpeg's,
// under the rules of video.h. A WAV whose length was not known when its head was written, as pipes
// leave it, goes up to the end of the file; what follows the last frame of an MP3 and is none is
// passed over.
//
// All channels are averaged, whatever they are called: (c0 + c1 + ...) / n in float32, in order.
// What encoders put before and after the sound (priming, padding) is cut off where the file tells.
// Resampling is ours: a windowed sinc (Kaiser, 32 zero crossings a side, cut off at 0.95 of the
// lower Nyquist frequency) with a filter of its own for every phase, in float32 with a fixed order
// of operations: the same input gives the same bytes on every machine. `ceil(n * to / from)`
// samples come out. At equal rates samples pass as they are. (Lossy codecs themselves compute in
// float32 with the vector instructions of the CPU; their lowest bits may differ between kinds of
// CPU.)
//
// Sound without a single sample, and samples that are NaN or infinite, are invalid_argument (B14);
// so is a stream that is cut or in which the decoder finds an error. Limits are checked before
// memory is taken; errors are those of media.h. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vitrove/media.h"

namespace vitrove {

struct AudioLimits {
  std::uint64_t max_item_bytes = std::uint64_t{64} << 20;
  double max_seconds = 3600.0;
  // As they are in the file, over all channels: more than an hour of 48 kHz stereo.
  std::uint64_t max_samples = 400'000'000;
};

struct AudioClip {
  std::vector<float> samples;  // mono, nominally from -1 to 1
  std::uint32_t rate = 0;      // samples a second
};

struct DecodedAudio {
  AudioClip clip;
  MediaFormat format = MediaFormat::unknown;
  MemoryLease lease;  // of the samples, and what goes beside them; empty without a budget
};

// `rate` is what the samples shall have: 1000 to 384000 a second.
DecodedAudio decode_audio(std::span<const std::byte> bytes, std::uint32_t rate,
                          const AudioLimits& limits, const DecodeContext& context = {});

}  // namespace vitrove
