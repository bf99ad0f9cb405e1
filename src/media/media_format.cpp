// Naming media by their content.
#include <algorithm>
#include <array>
#include <string>

#include "media/ascii.h"
#include "vitrove/error.h"
#include "vitrove/media.h"

namespace vitrove {
namespace {

struct FormatInfo {
  MediaFormat format;
  std::string_view name;
  std::optional<Modality> modality;
};

constexpr std::array formats{
    FormatInfo{MediaFormat::unknown, "unknown", std::nullopt},
    FormatInfo{MediaFormat::jpeg, "jpeg", Modality::image},
    FormatInfo{MediaFormat::png, "png", Modality::image},
    FormatInfo{MediaFormat::webp, "webp", Modality::image},
    FormatInfo{MediaFormat::gif, "gif", Modality::image},
    FormatInfo{MediaFormat::bmp, "bmp", Modality::image},
    FormatInfo{MediaFormat::tiff, "tiff", Modality::image},
    FormatInfo{MediaFormat::avif, "avif", Modality::image},
    FormatInfo{MediaFormat::heic, "heic", Modality::image},
    FormatInfo{MediaFormat::svg, "svg", Modality::image},
    FormatInfo{MediaFormat::ico, "ico", Modality::image},
    FormatInfo{MediaFormat::jpeg_xl, "jpeg xl", Modality::image},
    FormatInfo{MediaFormat::jpeg_2000, "jpeg 2000", Modality::image},
    FormatInfo{MediaFormat::psd, "psd", Modality::image},
    FormatInfo{MediaFormat::pnm, "pnm", Modality::image},
    FormatInfo{MediaFormat::pdf, "pdf", std::nullopt},
    FormatInfo{MediaFormat::html, "html", std::nullopt},
    FormatInfo{MediaFormat::text, "text", std::nullopt},
    FormatInfo{MediaFormat::mp4, "mp4", Modality::video},
    FormatInfo{MediaFormat::quicktime, "quicktime", Modality::video},
    FormatInfo{MediaFormat::webm, "webm", Modality::video},
    FormatInfo{MediaFormat::avi, "avi", Modality::video},
    FormatInfo{MediaFormat::mpeg_ts, "mpeg-ts", Modality::video},
    FormatInfo{MediaFormat::flv, "flv", Modality::video},
    FormatInfo{MediaFormat::asf, "asf", Modality::video},
    FormatInfo{MediaFormat::wav, "wav", Modality::audio},
    FormatInfo{MediaFormat::mp3, "mp3", Modality::audio},
    FormatInfo{MediaFormat::flac, "flac", Modality::audio},
    FormatInfo{MediaFormat::ogg, "ogg", Modality::audio},
    FormatInfo{MediaFormat::aac, "aac", Modality::audio},
    FormatInfo{MediaFormat::aiff, "aiff", Modality::audio},
    FormatInfo{MediaFormat::caf, "caf", Modality::audio},
    FormatInfo{MediaFormat::amr, "amr", Modality::audio},
};

constexpr std::array picture_formats{MediaFormat::jpeg, MediaFormat::png, MediaFormat::webp,
                                     MediaFormat::gif,  MediaFormat::bmp, MediaFormat::tiff,
                                     MediaFormat::avif, MediaFormat::heic};
constexpr std::array video_formats{MediaFormat::mp4, MediaFormat::quicktime, MediaFormat::webm,
                                   MediaFormat::avi, MediaFormat::gif};
// The containers may hold sound alone.
constexpr std::array audio_formats{MediaFormat::wav,       MediaFormat::mp3, MediaFormat::flac,
                                   MediaFormat::ogg,       MediaFormat::aac, MediaFormat::mp4,
                                   MediaFormat::quicktime, MediaFormat::webm};

bool is_one_of(MediaFormat format, std::span<const MediaFormat> formats_taken) {
  return std::ranges::find(formats_taken, format) != formats_taken.end();
}

const FormatInfo& info_of(MediaFormat format) {
  const auto found = std::ranges::find(formats, format, &FormatInfo::format);
  return found != formats.end() ? *found : formats.front();
}

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  MediaFormat format;
};

using namespace std::string_view_literals;

constexpr std::array signatures{
    Signature{0, "\xff\xd8\xff"sv, MediaFormat::jpeg},
    Signature{0, "\x89PNG\r\n\x1a\n"sv, MediaFormat::png},
    Signature{0, "GIF87a"sv, MediaFormat::gif},
    Signature{0, "GIF89a"sv, MediaFormat::gif},
    Signature{0, "BM"sv, MediaFormat::bmp},
    Signature{0, "II*\0"sv, MediaFormat::tiff},
    Signature{0, "MM\0*"sv, MediaFormat::tiff},
    Signature{0, "II+\0"sv, MediaFormat::tiff},
    Signature{0, "MM\0+"sv, MediaFormat::tiff},
    Signature{0, "\0\0\1\0"sv, MediaFormat::ico},
    Signature{0, "\0\0\2\0"sv, MediaFormat::ico},
    Signature{0, "\xff\x0a"sv, MediaFormat::jpeg_xl},
    Signature{4, "JXL \r\n\x87\n"sv, MediaFormat::jpeg_xl},
    Signature{4, "jP  \r\n\x87\n"sv, MediaFormat::jpeg_2000},
    Signature{0, "\xff\x4f\xff\x51"sv, MediaFormat::jpeg_2000},
    Signature{0, "8BPS"sv, MediaFormat::psd},
    Signature{0, "%PDF-"sv, MediaFormat::pdf},
    Signature{0, "\x1a\x45\xdf\xa3"sv, MediaFormat::webm},
    Signature{0, "fLaC"sv, MediaFormat::flac},
    Signature{0, "OggS"sv, MediaFormat::ogg},
    Signature{0, "ID3"sv, MediaFormat::mp3},
    Signature{0, "RF64"sv, MediaFormat::wav},
    Signature{0, "caff"sv, MediaFormat::caf},
    Signature{0, "#!AMR"sv, MediaFormat::amr},
    Signature{0, "FLV\1"sv, MediaFormat::flv},
    Signature{0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11"sv, MediaFormat::asf},
};

bool has_at(std::string_view text, std::size_t offset, std::string_view bytes) {
  return text.size() >= offset && text.substr(offset).starts_with(bytes);
}

MediaFormat riff_format(std::string_view text) {
  if (has_at(text, 8, "WEBP")) return MediaFormat::webp;
  if (has_at(text, 8, "AVI ")) return MediaFormat::avi;
  if (has_at(text, 8, "WAVE")) return MediaFormat::wav;
  return MediaFormat::unknown;
}

MediaFormat form_format(std::string_view text) {
  const bool is_aiff = has_at(text, 8, "AIFF") || has_at(text, 8, "AIFC");
  return is_aiff ? MediaFormat::aiff : MediaFormat::unknown;
}

// QuickTime files that are older than the box of brands begin with one of these.
bool is_bare_quicktime(std::string_view text) {
  constexpr std::array kinds{"moov"sv, "mdat"sv, "wide"sv, "free"sv, "skip"sv, "pnot"sv};
  constexpr unsigned char most = 0x1f;  // upper byte of a size; more would be a letter
  if (text.size() < 8 || static_cast<unsigned char>(text[0]) > most) return false;
  return std::ranges::find(kinds, text.substr(4, 4)) != kinds.end();
}

MediaFormat brand_format(std::string_view brand) {
  constexpr std::array avif{"avif"sv, "avis"sv};
  constexpr std::array heic{"heic"sv, "heix"sv, "heim"sv, "heis"sv,
                            "hevc"sv, "hevx"sv, "hevm"sv, "hevs"sv};
  if (std::ranges::find(avif, brand) != avif.end()) return MediaFormat::avif;
  if (std::ranges::find(heic, brand) != heic.end()) return MediaFormat::heic;
  if (brand == "qt  ") return MediaFormat::quicktime;
  return MediaFormat::unknown;
}

// The brands of an ISO base media file: the major one at 8, compatible ones from 16 on.
MediaFormat iso_media_format(std::string_view text) {
  bool is_still = false;
  for (std::size_t at = 8; at + 4 <= std::min<std::size_t>(text.size(), 64); at += 4) {
    if (at == 12) continue;  // minor version
    const std::string_view brand = text.substr(at, 4);
    if (const MediaFormat known = brand_format(brand); known != MediaFormat::unknown) return known;
    is_still = is_still || brand == "mif1" || brand == "msf1";
  }
  return is_still ? MediaFormat::heic : MediaFormat::mp4;
}

bool is_mpeg_audio(std::string_view text) {
  if (text.size() < 2) return false;
  const auto first = static_cast<unsigned char>(text[0]);
  const auto second = static_cast<unsigned char>(text[1]);
  // Frame sync, a version and a layer that exist.
  return first == 0xff && (second & 0xe0) == 0xe0 && (second & 0x18) != 0x08 &&
         (second & 0x06) != 0;
}

// AAC in ADTS: the same sync with the layer that MPEG audio has not, a rate that exists, and a
// length that holds the header.
bool is_adts(std::string_view text) {
  constexpr std::size_t header = 7;
  constexpr unsigned rates = 13;
  if (text.size() < header) return false;
  const auto at = [&](std::size_t i) { return unsigned{static_cast<unsigned char>(text[i])}; };
  const unsigned length = (at(3) & 3) << 11 | at(4) << 3 | at(5) >> 5;
  return at(0) == 0xff && (at(1) & 0xf6) == 0xf0 && (at(2) >> 2 & 15) < rates && length > header;
}

bool is_transport_stream(std::string_view text) {
  const auto has_packets = [text](std::size_t first, std::size_t size) {
    return text.size() > first + 2 * size && text[first] == 'G' && text[first + size] == 'G' &&
           text[first + 2 * size] == 'G';
  };
  constexpr std::size_t packet = 188;
  constexpr std::size_t time = 4;  // before each, as camcorders write it
  return has_packets(0, packet) || has_packets(time, time + packet);
}

bool is_pnm(std::string_view text) {
  return text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
         (text[2] == '\n' || text[2] == ' ' || text[2] == '\r' || text[2] == '\t');
}

bool is_text_character(unsigned char c) {
  const bool is_layout = c == '\t' || c == '\n' || c == '\r' || c == '\f';
  return is_layout || (c >= 0x20 && c != 0x7f && c != 0xc0 && c != 0xc1 && c < 0xf5);
}

// How many continuation bytes a leading byte of UTF-8 asks for.
unsigned continuation_bytes(unsigned char c) {
  if (c < 0x80) return 0;
  return c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
}

// UTF-8 without control characters; the last character may be cut.
bool is_text(std::string_view text) {
  unsigned expected = 0;
  for (const char signed_char : text) {
    const auto c = static_cast<unsigned char>(signed_char);
    const bool is_continuation = (c & 0xc0) == 0x80;
    if (!is_text_character(c) || is_continuation != (expected > 0)) return false;
    expected = is_continuation ? expected - 1 : continuation_bytes(c);
  }
  return !text.empty();
}

MediaFormat text_format(std::string_view text) {
  std::string_view head = text.substr(0, 1024);
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n\f"), head.size()));
  if (!is_text(head)) return MediaFormat::unknown;
  const std::string start = ascii_lower(head);
  if (!start.starts_with('<')) return MediaFormat::text;
  for (const auto tag : {"<!doctype html", "<html", "<head", "<body"}) {
    if (start.find(tag) != std::string::npos) return MediaFormat::html;
  }
  return start.find("<svg") != std::string::npos ? MediaFormat::svg : MediaFormat::text;
}

}  // namespace

std::string_view to_string(MediaFormat format) { return info_of(format).name; }

std::optional<Modality> modality_of(MediaFormat format) { return info_of(format).modality; }

bool is_decodable(MediaFormat format, Modality modality) {
  switch (modality) {
    case Modality::image:
      return is_one_of(format, picture_formats);
    case Modality::video:
      return is_one_of(format, video_formats);
    case Modality::audio:
      return is_one_of(format, audio_formats);
  }
  return false;
}

MediaFormat sniff(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("RIFF")) return riff_format(text);
  if (text.starts_with("FORM")) return form_format(text);
  if (has_at(text, 4, "ftyp")) return iso_media_format(text);
  if (is_bare_quicktime(text)) return MediaFormat::quicktime;
  for (const Signature& signature : signatures) {
    if (has_at(text, signature.offset, signature.bytes)) return signature.format;
  }
  if (is_pnm(text)) return MediaFormat::pnm;
  if (is_transport_stream(text)) return MediaFormat::mpeg_ts;
  if (is_mpeg_audio(text)) return MediaFormat::mp3;
  if (is_adts(text)) return MediaFormat::aac;
  return text_format(text);
}

}  // namespace vitrove
