// What an MP4 or QuickTime file makes the demuxer keep, counted before it is opened.
#include "media/iso_tables.h"

#include <string>

#include "support.h"
#include "vitrove/error.h"

namespace vitrove::test {
namespace {

std::string box(const std::string& kind, const std::string& body) {
  return big_endian(static_cast<std::uint32_t>(body.size() + 8)) + kind + body;
}
std::string full(const std::string& kind, const std::string& body) {
  return box(kind, std::string(4, '\0') + body);
}
std::string handler(const std::string& what) { return full("hdlr", std::string(4, '\0') + what); }
std::string count(std::uint32_t number) { return big_endian(number); }

// Plain PCM: every sample is one of sound, of one tick.
std::string sound_table(std::uint32_t chunks, std::uint32_t samples_a_chunk) {
  return box("stbl", full("stts", count(1) + count(chunks * samples_a_chunk) + count(1)) +
                         full("stsc", count(1) + count(1) + count(samples_a_chunk) + count(1)) +
                         full("stsz", count(2) + count(chunks * samples_a_chunk)) +
                         full("stco", count(chunks) + std::string(4 * chunks, '\0')));
}
std::string file_of(const std::string& track) {
  return box("ftyp", "isom") + box("moov", box("trak", track)) +
         box("mdat", std::string(1 << 20, 'x'));
}

ErrorCode refusal_of(const std::string& file) {
  try {
    check_iso_tables(to_bytes(file), MediaFormat::mp4);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;  // it is none
}

TEST(IsoTables, PlainSoundCountsByThePiecesThatTheDemuxerTakes) {
  const auto mdia = [](std::uint32_t chunks, std::uint32_t samples) {
    return box("mdia", handler("soun") + box("minf", sound_table(chunks, samples)));
  };
  EXPECT_EQ(refusal_of(file_of(mdia(100, 48'000))), ErrorCode::internal) << "100 s of sound";
  EXPECT_EQ(refusal_of(file_of(mdia(80, 0x7fffffff))), ErrorCode::too_large);
}

TEST(IsoTables, QuickTimesSecondHandlerIsNotTheTracks) {
  const std::string minf = box("minf", full("hdlr", "dhlralis") + sound_table(100, 48'000));
  EXPECT_EQ(refusal_of(file_of(box("mdia", handler("soun") + minf))), ErrorCode::internal);
}

TEST(IsoTables, EachEditTakesAllSamplesAgain) {
  const auto track = [](std::uint32_t edits) {
    const std::string table = box("stbl", full("stsz", count(40) + count(20'000)));
    const std::string elst = full("elst", count(edits) + std::string(12 * edits, '\0'));
    return box("mdia", handler("vide") + box("minf", table)) + box("edts", elst);
  };
  EXPECT_EQ(refusal_of(file_of(track(3))), ErrorCode::internal);
  EXPECT_EQ(refusal_of(file_of(track(10'000))), ErrorCode::too_large);
}

}  // namespace
}  // namespace vitrove::test
