#include <cstdio>  // jpeglib.h needs it

#include <jpeglib.h>
#include <tiffio.h>
#include <webp/decode.h>

#include "media/ffmpeg_source.h"
#include "media/heif_library.h"
#include "vitrove/media.h"

extern "C" {
#include <libswscale/swscale.h>
}

namespace vitrove {
namespace {

// Three parts, eight bits each.
std::string dotted(unsigned version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff) + "." +
         std::to_string(version & 0xff);
}

// "LIBTIFF, Version 4.5.0", and lines about its authors.
std::string found_tiff_version() {
  const std::string_view text = TIFFGetVersion();
  const auto line = text.substr(0, text.find('\n'));
  return std::string(line.substr(line.rfind(' ') + 1));
}

// Millions, thousands and ones, of the headers it was built with: it does not tell at run time.
std::string built_jpeg_version() {
  constexpr unsigned number = LIBJPEG_TURBO_VERSION_NUMBER;
  return std::to_string(number / 1'000'000) + "." + std::to_string(number / 1'000 % 1'000) + "." +
         std::to_string(number % 1'000);
}

std::string found_heif_version() {
  const HeifLibrary* heif = heif_library();
  if (heif == nullptr) return {};
  return heif->get_version != nullptr ? heif->get_version() : "unknown";
}

}  // namespace

std::vector<MediaLibrary> media_libraries() {
  return {{"libavcodec", dotted(avcodec_version())},
          {"libavformat", dotted(avformat_version())},
          {"libswscale", dotted(swscale_version())},
          {"libheif", found_heif_version()},
          {"libtiff", found_tiff_version()},
          {"libwebp", dotted(static_cast<unsigned>(WebPGetDecoderVersion()))},
          {"libjpeg-turbo", built_jpeg_version()}};
}

}  // namespace vitrove
