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
constexpr std::uint64_t sound = 0x736f756e;  // "soun"
constexpr std::uint64_t video = 0x76696465;  // "vide"

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
      if (box->type == "trak") add_track();
      note(*box);
      if (depth < deepest && holds_boxes(box->type)) walk(box->body, depth + 1);
      if (box->type == "stbl") add_table();
      if (box->type == "trak") add_track();
    }
  }

 private:
  struct Track {
    bool is_sound = false;
    bool has_unit_ticks = false;  // one entry of time to sample, of one tick each
    std::uint64_t samples = 0;
    std::uint64_t chunks = 0;
    std::uint64_t edits = 0;
    std::uint64_t entries = 0;                   // of the tables so far
    std::span<const std::byte> samples_a_chunk;  // the body of an stsc box
  };

  void note(const IsoBox& box) {
    if (box.type == "hdlr") {
      // QuickTime has another one, about where the data lies.
      const std::uint64_t what = read_be(box.body, 8, 4);
      if (what == sound || what == video) track_.is_sound = what == sound;
    } else if (box.type == "stts") {
      track_.has_unit_ticks = read_be(box.body, 4, 4) == 1 && read_be(box.body, 12, 4) == 1;
    } else if (box.type == "stsz" || box.type == "stz2") {
      track_.samples = std::max(track_.samples, read_be(box.body, 8, 4));
    } else if (box.type == "stco" || box.type == "co64") {
      const std::size_t bytes = box.type == "stco" ? 4 : 8;
      track_.chunks = std::min<std::uint64_t>(read_be(box.body, 4, 4), box.body.size() / bytes);
    } else if (box.type == "stsc") {
      track_.samples_a_chunk = box.body;
    } else if (box.type == "elst") {
      track_.edits = std::min<std::uint64_t>(read_be(box.body, 4, 4), box.body.size() / 12);
    } else if (box.type == "trun") {
      add(read_be(box.body, 4, 4));
    }
  }

  // What the demuxer keeps: an entry a sample, and all of them again for each edit.
  void add_table() {
    const bool is_plain_sound = track_.is_sound && track_.has_unit_ticks;
    track_.entries += is_plain_sound ? pieces_of_chunks() : track_.samples;
    track_.samples = 0;
    track_.chunks = 0;
  }
  void add_track() {
    add(std::max<std::uint64_t>(1, track_.edits) * std::min(track_.entries, most_samples + 1));
    track_ = {};
  }

  // Of plain PCM every sample of sound is one, and the demuxer takes 1024 at a time.
  std::uint64_t pieces_of_chunks() const {
    const auto table = track_.samples_a_chunk;
    const std::uint64_t runs = std::min<std::uint64_t>(read_be(table, 4, 4), table.size() / 12);
    std::uint64_t pieces = 0;
    for (std::uint64_t run = 0; run < runs && pieces <= most_samples; ++run) {
      const std::size_t at = 8 + 12 * run;
      const std::uint64_t first = read_be(table, at, 4);
      const std::uint64_t end = run + 1 < runs ? read_be(table, at + 12, 4) : track_.chunks + 1;
      const std::uint64_t last = std::min(end, track_.chunks + 1);
      if (first < last) pieces += (last - first) * ((read_be(table, at + 4, 4) + 1023) / 1024);
    }
    return pieces;
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
