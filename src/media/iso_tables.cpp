#include "media/iso_tables.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "media/decode_job.h"
#include "media/iso_boxes.h"

namespace vitrove {
namespace {

constexpr std::uint64_t most_samples = 4'000'000;  // over all tracks; hours of film and sound
constexpr int deepest = 8;

bool holds_boxes(std::string_view type) {
  constexpr std::string_view containers[] = {"moov", "trak", "mdia", "minf", "stbl",
                                             "moof", "traf", "edts", "udta"};
  return std::ranges::find(containers, type) != std::end(containers);
}

class ClaimCounter {
 public:
  std::uint64_t total() const { return total_; }

  void walk(std::span<const std::byte> rest, int depth) {
    while (const auto box = take_box(rest)) {
      if (box->type == "cmov") {
        throw Error(ErrorCode::unsupported_format,
                    "compressed quicktime headers are not supported");
      }
      if (box->type == "trak") track_ = {};
      note(*box);
      if (depth < deepest && holds_boxes(box->type)) walk(box->body, depth + 1);
      if (box->type == "stbl" || box->type == "trak") add_track();
    }
  }

 private:
  struct Track {
    bool is_sound = false;
    bool has_unit_ticks = false;  // one entry of time to sample, of one tick each
    std::uint64_t samples = 0;
  };

  void note(const IsoBox& box) {
    if (box.type == "hdlr") {
      track_.is_sound = read_be(box.body, 8, 4) == 0x736f756e;  // "soun"
    } else if (box.type == "stts") {
      track_.has_unit_ticks = read_be(box.body, 4, 4) == 1 && read_be(box.body, 12, 4) == 1;
    } else if (box.type == "stsz" || box.type == "stz2") {
      track_.samples = std::max(track_.samples, read_be(box.body, 8, 4));
    } else if (box.type == "trun") {
      add(read_be(box.body, 4, 4));
    }
  }

  // Of plain PCM every sample of sound is one, and the demuxer works in chunks.
  void add_track() {
    const bool is_plain_sound = track_.is_sound && track_.has_unit_ticks;
    if (!is_plain_sound) add(track_.samples);
    track_.samples = 0;
  }

  void add(std::uint64_t samples) {
    total_ += samples;
    if (total_ <= most_samples) return;
    throw Error(ErrorCode::too_large, "the file claims more than the limit of " +
                                          std::to_string(most_samples) + " media samples");
  }

  Track track_;
  std::uint64_t total_ = 0;
};

}  // namespace

void check_iso_tables(std::span<const std::byte> file, MediaFormat format) {
  ClaimCounter counter;
  counter.walk(file, 0);
  if (counter.total() > file.size()) throw_damaged(format, "claims more samples than it has bytes");
}

}  // namespace vitrove
