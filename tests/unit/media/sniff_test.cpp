// Naming media by content (field case B10).
#include <map>

#include "support.h"

namespace vitrove::test {
namespace {

using namespace std::string_view_literals;

TEST(Sniff, KnowsEveryCommittedPictureByItsContent) {
  const std::map<std::string, MediaFormat> by_extension{
      {".jpg", MediaFormat::jpeg},  {".png", MediaFormat::png},       {".webp", MediaFormat::webp},
      {".gif", MediaFormat::gif},   {".bmp", MediaFormat::bmp},       {".tiff", MediaFormat::tiff},
      {".avif", MediaFormat::avif}, {".heic", MediaFormat::heic},     {".svg", MediaFormat::svg},
      {".ico", MediaFormat::ico},   {".jp2", MediaFormat::jpeg_2000}, {".ppm", MediaFormat::pnm}};
  for (const auto& entry : std::filesystem::directory_iterator(media_dir())) {
    if (entry.path().extension() == ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    EXPECT_EQ(sniff(read_file(entry.path())), by_extension.at(entry.path().extension().string()));
  }
}

TEST(Sniff, KnowsOtherFormatsByTheirFirstBytes) {
  const std::vector<std::pair<std::string_view, MediaFormat>> table{
      {"\xff\x0a\xfa\x7f"sv, MediaFormat::jpeg_xl},
      {"\0\0\0\x0cJXL \r\n\x87\n"sv, MediaFormat::jpeg_xl},
      {"8BPS\0\1"sv, MediaFormat::psd},
      {"%PDF-1.7\n"sv, MediaFormat::pdf},
      {"\0\0\0\x18"
       "ftypisom\0\0\2\0isomiso2"sv,
       MediaFormat::mp4},
      {"\0\0\0\x14"
       "ftypqt  \0\0\0\0qt  "sv,
       MediaFormat::quicktime},
      {"\0\0\0\x1c"
       "ftypmif1\0\0\0\0mif1avifmiaf"sv,
       MediaFormat::avif},
      {"\0\0\0\x14"
       "ftypmif1\0\0\0\0miaf"sv,
       MediaFormat::heic},
      {"\x1a\x45\xdf\xa3\x9f\x42"sv, MediaFormat::webm},
      {"RIFF\x24\0\0\0WAVEfmt "sv, MediaFormat::wav},
      {"RIFF\x24\0\0\0AVI LIST"sv, MediaFormat::avi},
      {"RIFF\x24\0\0\0XXXX"sv, MediaFormat::unknown},
      {"ID3\4\0"sv, MediaFormat::mp3},
      {"\xff\xfb\x90\x64"sv, MediaFormat::mp3},
      {"fLaC\0\0\0\x22"sv, MediaFormat::flac},
      {"OggS\0\2"sv, MediaFormat::ogg},
      {"RF64\xff\xff\xff\xffWAVEds64"sv, MediaFormat::wav},
      {"\xff\xf1\x50\x80\x2b\x1f\xfc"sv, MediaFormat::aac},
      {"\xff\xf1\x50\x80\0\xdf\xfc"sv, MediaFormat::unknown},  // of a length below its header
      {"FORM\0\0\0\x2e"
       "AIFFCOMM"sv,
       MediaFormat::aiff},
      {"FORM\0\0\0\x2e"
       "AIFCFVER"sv,
       MediaFormat::aiff},
      {"FORM\0\0\0\x2eILBMBMHD"sv, MediaFormat::unknown},
      {"caff\0\1\0\0"sv, MediaFormat::caf},
      {"#!AMR\n"sv, MediaFormat::amr},
      {"#!AMR-WB\n"sv, MediaFormat::amr},
      {"FLV\1\5"sv, MediaFormat::flv},
      {"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9"sv, MediaFormat::asf},
      {"\0\0\0\x08wide\0\0\1\0mdat"sv, MediaFormat::quicktime},
      {"\0\0\x0b\xaamoov\0\0\0\x6cmvhd"sv, MediaFormat::quicktime},
      {"\0\0\0\1mdat\0\0\0\0"sv, MediaFormat::quicktime},
      {"\0\0\0\x10"
       "free"sv,
       MediaFormat::quicktime},
      {"\0\0\0\x10skip"sv, MediaFormat::quicktime},
      {"\0\0\0\x14pnot"sv, MediaFormat::quicktime},
      {"the free man"sv, MediaFormat::text},
      {"lookmoov and more"sv, MediaFormat::text},
      {"<!DOCTYPE html><html>"sv, MediaFormat::html},
      {"\n  <HTML><body>404"sv, MediaFormat::html},
      {"<?xml version='1.0'?><html xmlns='x'>"sv, MediaFormat::html},
      {"\xef\xbb\xbf<svg xmlns='x'/>"sv, MediaFormat::svg},
      {"{\"error\": \"not found\"}"sv, MediaFormat::text},
      {"hello"sv, MediaFormat::text},
      {"\0\0\0\0\0\0\0\0"sv, MediaFormat::unknown},
      {"\xff"sv, MediaFormat::unknown},
      {""sv, MediaFormat::unknown},
  };
  for (const auto& [start, format] : table) {
    EXPECT_EQ(sniff(to_bytes(start)), format) << "expected " << to_string(format);
  }
}

TEST(Sniff, RecognisesATransportStreamByItsPacketLength) {
  std::string packets(3 * 188, '\1');
  packets[0] = packets[188] = packets[376] = 'G';
  EXPECT_EQ(sniff(to_bytes(packets)), MediaFormat::mpeg_ts);
  packets[376] = 'X';
  EXPECT_NE(sniff(to_bytes(packets)), MediaFormat::mpeg_ts);
}

TEST(Sniff, TellsWhatModalityAFormatBelongsTo) {
  EXPECT_EQ(modality_of(MediaFormat::webp), Modality::image);
  EXPECT_EQ(modality_of(MediaFormat::mp4), Modality::video);
  EXPECT_EQ(modality_of(MediaFormat::flac), Modality::audio);
  EXPECT_EQ(modality_of(MediaFormat::html), std::nullopt);
}

TEST(UnsupportedFormats, AreRefusedByNameWith415) {
  for (const auto& entry : std::filesystem::directory_iterator(media_dir())) {
    if (!entry.path().filename().string().starts_with("foreign.")) continue;
    SCOPED_TRACE(entry.path().filename());
    const Bytes bytes = read_file(entry.path());
    const Failure failure = decode_failure(bytes);
    EXPECT_EQ(failure.status(), 415);
    EXPECT_NE(failure.message.find(to_string(sniff(bytes))), std::string::npos) << failure.message;
    expect_safe_for_clients(failure.message);
  }
}

TEST(UnsupportedFormats, TextAndErrorPagesAreNoPictures) {
  for (const auto text : {"<!doctype html><title>404</title>"sv, "not found"sv, "\1\2\3\4"sv}) {
    EXPECT_EQ(decode_failure(to_bytes(text)).status(), 415);
  }
}

TEST(UnsupportedFormats, AreToldForEachModality) {
  EXPECT_TRUE(is_decodable(MediaFormat::gif, Modality::image));
  EXPECT_TRUE(is_decodable(MediaFormat::gif, Modality::video));
  EXPECT_FALSE(is_decodable(MediaFormat::gif, Modality::audio));
  EXPECT_TRUE(is_decodable(MediaFormat::mp4, Modality::audio));
  EXPECT_FALSE(is_decodable(MediaFormat::mp4, Modality::image));
  EXPECT_FALSE(is_decodable(MediaFormat::png, Modality::video));
  EXPECT_FALSE(is_decodable(MediaFormat::html, Modality::image));
}

TEST(UnsupportedFormats, AnEmptyItemIsABadRequest) { EXPECT_EQ(decode_failure({}).status(), 400); }

}  // namespace
}  // namespace vitrove::test
