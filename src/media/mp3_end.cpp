#include "media/mp3_end.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "media/decode_job.h"

namespace vitrove {
namespace {

constexpr std::size_t mp3_head_bytes = 4;
constexpr std::size_t id3_head_bytes = 10;
constexpr std::size_t most_before_first_frame = std::size_t{64} << 10;

// Kilobits a second of layer III by their four bits: MPEG-1, then MPEG-2 and 2.5. Zero is for rates
// of the file's own choice, whose frames do not tell their length.
constexpr std::array<std::array<std::size_t, 15>, 2> mp3_bit_rates{
    {{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
     {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}};
constexpr std::array<std::size_t, 3> mp3_sample_rates{44'100, 48'000, 32'000};

class Mp3Frames {
 public:
  explicit Mp3Frames(std::span<const std::byte> file) : file_(file) {}

  // Nothing where there is no head of layer III that tells the frame's length.
  std::optional<std::size_t> length_at(std::size_t at) const {
    if (at > file_.size() || file_.size() - at < mp3_head_bytes) return std::nullopt;
    const unsigned version = byte(at + 1) >> 3 & 3;  // 0 is 2.5, 1 nothing, 2 is 2, 3 is 1
    const unsigned layer = byte(at + 1) >> 1 & 3;    // 1 is III
    const unsigned bit_rate = byte(at + 2) >> 4;
    const unsigned sample_rate = byte(at + 2) >> 2 & 3;
    const bool is_synced = byte(at) == 0xff && byte(at + 1) >> 5 == 7;
    if (!is_synced || version == 1 || layer != 1) return std::nullopt;
    if (bit_rate == 0 || bit_rate == 15 || sample_rate == 3) return std::nullopt;
    const bool is_first = version == 3;
    const std::size_t rate = mp3_sample_rates[sample_rate] >> (is_first ? 0 : version == 2 ? 1 : 2);
    const std::size_t bits = mp3_bit_rates[is_first ? 0 : 1][bit_rate] * 1000;
    const std::size_t padding = byte(at + 2) >> 1 & 1;
    return (is_first ? 144 : 72) * bits / rate + padding;
  }

  // The first place from `at` on where a frame stands that another follows, or the end of the file.
  std::optional<std::size_t> find(std::size_t at, std::size_t end) const {
    for (; at < end; ++at) {
      const auto length = length_at(at);
      if (!length) continue;
      const std::size_t next = at + *length;
      if (next == file_.size() || (length_at(next) && are_alike(at, next))) return at;
    }
    return std::nullopt;
  }

  // Behind the last of the frames that follow each other from here on.
  std::size_t end_of_run(std::size_t at) const {
    while (const auto length = length_at(at)) {
      if (*length > file_.size() - at) throw_damaged(MediaFormat::mp3, "a frame is cut");
      at += *length;
    }
    return at;
  }

 private:
  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(file_[at]); }

  // Of one version and one rate.
  bool are_alike(std::size_t a, std::size_t b) const {
    return (byte(a + 1) & 0xfe) == (byte(b + 1) & 0xfe) &&
           (byte(a + 2) & 0x0c) == (byte(b + 2) & 0x0c);
  }

  std::span<const std::byte> file_;
};

// ID3v2 in front of the sound, whose pictures may look like anything.
std::size_t end_of_tags(std::span<const std::byte> file) {
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[at + i]); };
  while (file.size() - at >= id3_head_bytes && byte(0) == 'I' && byte(1) == 'D' && byte(2) == '3') {
    const std::size_t size =
        (byte(6) & 127) << 21 | (byte(7) & 127) << 14 | (byte(8) & 127) << 7 | (byte(9) & 127);
    const std::size_t footer = (byte(5) & 0x10) != 0 ? id3_head_bytes : 0;
    const std::size_t whole = id3_head_bytes + size + footer;
    if (whole > file.size() - at) return file.size();
    at += whole;
  }
  return at;
}

}  // namespace

std::span<const std::byte> without_mp3_tail(std::span<const std::byte> file) {
  const Mp3Frames frames(file);
  const std::size_t tags = end_of_tags(file);
  const auto first = frames.find(tags, std::min(file.size(), tags + most_before_first_frame));
  if (!first) return file;
  const std::size_t end = frames.end_of_run(*first);
  return frames.find(end, file.size()) ? file : file.first(end);
}

}  // namespace vitrove
