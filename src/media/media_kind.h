// As what a file can be taken: by its format and, of a container that may be a clip or a sound, by
// the streams that it lists.
//
// Only the list of streams is read (`moov` of MP4 and QuickTime, `Tracks` of WebM and Matroska):
// boxes and elements are stepped over, of which a bounded number is looked at, and nothing is
// allocated by their word. A list that is not found, that is behind too much, that names neither
// sound nor pictures, or sound and a track of some other kind than is usual, says nothing. The
// format counts then, and what is wrong is told by whoever decodes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "vitrove/media.h"

namespace vitrove {

class MediaKind {
 public:
  explicit MediaKind(std::span<const std::byte> file);

  MediaFormat format() const { return format_; }
  // Whether it may be decoded as that: a clip has pictures that move, which those on the cover of a
  // song and beside its chapters do not, and a sound has sound.
  bool can_be(Modality modality) const;
  // What it is, when nobody says otherwise. Nothing for what is no medium.
  std::optional<Modality> own() const;

 private:
  struct Streams {
    bool has_sound = false;
    bool has_pictures = false;
    bool are_known() const { return has_sound || has_pictures; }
  };
  class BoxReading;
  class ElementReading;
  static Streams streams_of(std::span<const std::byte> file, MediaFormat format);

  MediaFormat format_;
  Streams streams_;
};

}  // namespace vitrove
