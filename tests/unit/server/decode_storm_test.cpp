// Decoding is bounded by turns and not by requests (B75): what a storm of pictures does to others.
#include <chrono>
#include <future>

#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::uint32_t large_width = 5000;
constexpr std::uint32_t large_height = 4000;  // 20 million pixels

// Black, of one bit a pixel, and small as a file.
EncodeItem large_picture(std::uint8_t seed) {
  std::string rows(std::size_t{large_height} * (1 + (large_width + 7) / 8), '\0');
  rows[1] = static_cast<char>(seed);
  const std::string header =
      big_endian(large_width) + big_endian(large_height) + std::string("\1\0\0\0\0", 5);
  EncodeItem item;
  item.bytes = std::make_shared<const Bytes>(
      to_bytes("\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) +
               png_chunk("IDAT", stored_deflate(rows, 65535)) + png_chunk("IEND", "")));
  return item;
}

EncodeItem broken_item(Modality modality, const std::string& text) {
  EncodeItem item;
  item.modality = modality;
  item.bytes = std::make_shared<const Bytes>(to_bytes(text));
  return item;
}

// Of each kind whose header is dear to read one that is broken there.
std::vector<EncodeItem> broken_headers() {
  using namespace std::string_literals;
  return {broken_item(Modality::video, "GIF89a\1\0\1\0\0\0\0"s),
          broken_item(Modality::audio, "RIFF\x24\0\0\0WAVEfmt \x10\0"s),
          broken_item(Modality::image, "\0\0\0\x18"s + "ftypheic" + "\0\0\0\0"s + "heicmif1"),
          broken_item(Modality::image, "\0\0\0\x18"s + "ftypavif" + "\0\0\0\0"s + "avifmif1")};
}

class DecodeStorm : public ::testing::Test {
 protected:
  static ServerConfig with_turns(std::uint32_t count) {
    ServerConfig config = small_config();
    config.decode_threads = count;
    return config;
  }

  // A request that the preprocessor holds, with its turn.
  std::future<void> begin(ServiceParts& parts, EncodeItem item, std::size_t held) {
    auto done = std::async(std::launch::async, [&parts, item = std::move(item)] {
      EXPECT_NO_THROW(parts.service->encode(request_for({item})));
    });
    EXPECT_TRUE(parts.encoder->preprocessing().wait_for_waiting(held));
    return done;
  }

  // Whether there is no turn left for it.
  static bool has_to_wait(ServiceParts& parts, EncodeItem item) {
    auto refused = std::async(std::launch::async, [&parts, item = std::move(item)] {
      EncodeRequest request = request_for({item});
      request.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      try {
        parts.service->encode(std::move(request));
      } catch (const Error& error) {
        return error.code() == ErrorCode::deadline_exceeded;
      }
      return false;
    });
    // One that got a turn would stand before the preprocessor.
    const bool ended = refused.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    if (!ended) parts.encoder->preprocessing().open();
    return refused.get() && ended;
  }
};

TEST_F(DecodeStorm, NoMorePicturesAreDecodedAtATimeThanThereAreTurns) {
  ServiceParts parts(with_turns(2));
  parts.encoder->preprocessing().close();
  const auto first = begin(parts, url_item(png_url(1)), 1);
  const auto second = begin(parts, url_item(png_url(2)), 2);
  EXPECT_TRUE(has_to_wait(parts, url_item(png_url(3))));
  parts.encoder->preprocessing().open();
}

TEST_F(DecodeStorm, LargePicturesLeaveATurnToSmallOnes) {
  ServiceParts parts(with_turns(2));
  parts.encoder->preprocessing().close();
  const auto large = begin(parts, large_picture(1), 1);
  EXPECT_TRUE(has_to_wait(parts, large_picture(2)));
  const auto small = begin(parts, url_item(png_url(1)), 2);
  parts.encoder->preprocessing().open();
}

// Of a clip or a sound all packets are read to know what it holds. If that took no turn, it would
// be told here that it is broken.
TEST_F(DecodeStorm, NoClipOrSoundIsLookedThroughBeforeItsTurn) {
  ServiceParts parts(with_turns(1));
  parts.encoder->preprocessing().close();
  const auto held = begin(parts, url_item(png_url(1)), 1);
  for (const EncodeItem& item : broken_headers()) EXPECT_TRUE(has_to_wait(parts, item));
  parts.encoder->preprocessing().open();
}

TEST_F(DecodeStorm, WhatIsBrokenIsSaidInItsTurn) {
  ServiceParts parts(with_turns(1));
  for (const EncodeItem& item : broken_headers()) {
    const auto code = failure_of([&] { parts.service->encode(request_for({item})); }).code;
    // Without libheif.
    const bool is_unknown =
        item.modality == Modality::image && code == ErrorCode::unsupported_format;
    EXPECT_TRUE(is_unknown || code == ErrorCode::invalid_argument) << to_string(code);
  }
}

}  // namespace
}  // namespace vitrove::test
