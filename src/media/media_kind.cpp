#include "media/media_kind.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "media/ebml.h"
#include "media/iso_boxes.h"

namespace vitrove {
namespace {

// Boxes or elements of one file that are looked at; real headers have a few dozen.
constexpr int most_steps = 10'000;

}  // namespace

// MP4 and QuickTime.
class MediaKind::BoxReading {
 public:
  Streams run(std::span<const std::byte> file) {
    auto header = find(file, "moov");
    while (const auto box = next(header)) {
      if (box->type == "trak") add_track(box->body);
    }
    Streams streams;
    if (steps_left_ < 0) return streams;
    for (const Track& track : tracks_) {
      streams.has_sound = streams.has_sound || track.kind == sound;
      streams.has_pictures =
          streams.has_pictures || (track.kind == pictures && !is_chapters(track));
    }
    // FFmpeg takes a track for pictures by its codec, whatever it calls itself.
    const bool may_have_pictures =
        std::ranges::any_of(tracks_, [](const Track& track) { return !is_known(track.kind); });
    return streams.has_pictures || !may_have_pictures ? streams : Streams{};
  }

 private:
  static constexpr std::uint64_t sound = 0x736f756e;     // "soun"
  static constexpr std::uint64_t pictures = 0x76696465;  // "vide"

  // The handler types of sounds and clips, and of what is neither: words, time codes, hints, data.
  static bool is_known(std::uint64_t kind) {
    constexpr std::array<std::uint64_t, 12> known = {
        sound,      pictures,   0x74657874,
        0x7362746c, 0x73756274, 0x73756270,  // text sbtl subt subp
        0x636c6370, 0x746d6364, 0x68696e74,
        0x6d657461, 0x6f64736d, 0x7364736d};  // clcp tmcd hint meta odsm sdsm
    return std::ranges::find(known, kind) != known.end();
  }

  struct Track {
    std::uint64_t id = 0;
    std::uint64_t kind = 0;
  };

  std::optional<IsoBox> next(std::span<const std::byte>& rest) {
    return steps_left_-- > 0 ? take_box(rest) : std::nullopt;
  }

  // The body of the first box of this type; empty when there is none.
  std::span<const std::byte> find(std::span<const std::byte> rest, std::string_view type) {
    while (const auto box = next(rest)) {
      if (box->type == type) return box->body;
    }
    return {};
  }

  void add_track(std::span<const std::byte> rest) {
    Track track;
    while (const auto box = next(rest)) {
      if (box->type == "tkhd") track.id = read_be(box->body, is_wide(box->body) ? 20 : 12, 4);
      if (box->type == "mdia") track.kind = read_be(find(box->body, "hdlr"), 8, 4);
      if (box->type == "tref") add_chapters(find(box->body, "chap"));
    }
    tracks_.push_back(track);
  }

  // Version 1 has times of eight bytes.
  static bool is_wide(std::span<const std::byte> body) { return read_be(body, 0, 1) == 1; }

  void add_chapters(std::span<const std::byte> ids) {
    for (BoxReader reader(ids); !reader.is_empty() && steps_left_-- > 0;) {
      chapters_.push_back(reader.take(4));
    }
  }

  // A track of pictures that another refers to shows one beside each chapter.
  bool is_chapters(const Track& track) const {
    return std::ranges::find(chapters_, track.id) != chapters_.end();
  }

  int steps_left_ = most_steps;
  std::vector<Track> tracks_;
  std::vector<std::uint64_t> chapters_;  // ids of tracks
};

// WebM and Matroska. Pictures on covers are attachments there, and no tracks.
class MediaKind::ElementReading {
 public:
  Streams run(std::span<const std::byte> file) {
    auto tracks = find(find(file, segment), list_of_tracks);
    Streams streams;
    while (const auto element = next(tracks)) {
      if (element->id != track) continue;
      const auto type = find(element->body, track_type);
      const std::uint64_t kind = read_be(type, 0, std::min<std::size_t>(type.size(), 8));
      streams.has_sound = streams.has_sound || kind == sound;
      streams.has_pictures = streams.has_pictures || kind == pictures;
    }
    return steps_left_ < 0 ? Streams{} : streams;
  }

 private:
  static constexpr std::uint64_t segment = 0x18538067;
  static constexpr std::uint64_t cluster = 0x1f43b675;
  static constexpr std::uint64_t list_of_tracks = 0x1654ae6b;
  static constexpr std::uint64_t track = 0xae;
  static constexpr std::uint64_t track_type = 0x83;
  static constexpr std::uint64_t pictures = 1;
  static constexpr std::uint64_t sound = 2;

  std::optional<EbmlElement> next(std::span<const std::byte>& rest) {
    return steps_left_-- > 0 ? take_element(rest) : std::nullopt;
  }

  // The body of the first element of this id, before any packets; empty when there is none.
  std::span<const std::byte> find(std::span<const std::byte> rest, std::uint64_t id) {
    for (auto element = next(rest); element && element->id != cluster; element = next(rest)) {
      if (element->id == id) return element->body;
    }
    return {};
  }

  int steps_left_ = most_steps;
};

MediaKind::Streams MediaKind::streams_of(std::span<const std::byte> file, MediaFormat format) {
  switch (format) {
    case MediaFormat::mp4:
    case MediaFormat::quicktime:
      return BoxReading().run(file);
    case MediaFormat::webm:
      return ElementReading().run(file);
    default:
      return {};
  }
}

MediaKind::MediaKind(std::span<const std::byte> file)
    : format_(sniff(file)), streams_(streams_of(file, format_)) {}

bool MediaKind::can_be(Modality modality) const {
  if (!is_decodable(format_, modality)) return false;
  if (!streams_.are_known()) return true;
  return modality == Modality::audio ? streams_.has_sound : streams_.has_pictures;
}

std::optional<Modality> MediaKind::own() const {
  const auto by_format = modality_of(format_);
  const bool is_sound_alone = streams_.has_sound && !streams_.has_pictures;
  return by_format == Modality::video && is_sound_alone ? Modality::audio : by_format;
}

}  // namespace vitrove
