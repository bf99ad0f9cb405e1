// How large an item may become for the model is the operator's decision, in the model's own files
// or in PreprocessLimits: a request's parameters stay within that.
#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::string_view qwen2 =
    R"({"image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 3136,
        "max_pixels": 200704})";
constexpr std::string_view qwen2_clips =
    R"({"video_processor_type": "Qwen2VLVideoProcessor", "min_pixels": 3136,
        "max_pixels": 50176, "max_frames": 6})";
constexpr std::string_view qwen3 =
    R"({"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16,
        "size": {"shortest_edge": 4096, "longest_edge": 262144}})";
constexpr std::string_view qwen3_clips =
    R"({"video_processor_type": "Qwen3VLVideoProcessor", "patch_size": 16,
        "size": {"shortest_edge": 4096, "longest_edge": 262144}})";
constexpr std::string_view clip = R"({"image_processor_type": "CLIPImageProcessor"})";
constexpr std::string_view whisper = R"({"feature_extractor_type": "WhisperFeatureExtractor"})";

std::uint64_t picture_bytes(const Preprocessor& preprocessor, std::uint32_t width,
                            std::uint32_t height, std::string_view kwargs) {
  return preprocessor.bytes_beside(width, height, preprocessor.resolve(Modality::image, kwargs));
}

std::uint64_t clip_bytes(const Preprocessor& preprocessor, std::uint32_t side, std::uint64_t frames,
                         std::string_view kwargs) {
  return preprocessor.video_bytes_beside({.width = side, .height = side, .frames = frames},
                                         preprocessor.resolve(Modality::video, kwargs));
}

template <typename Action>
void expect_too_large(Action action, std::string_view limit) {
  const Failure failure = failure_of(action);
  EXPECT_EQ(failure.status(), 413) << failure.message;
  EXPECT_NE(failure.message.find(limit), std::string::npos) << failure.message;
}

TEST(ProcessedPictures, ARequestMayAskForWhatTheModelsOwnFileAllows) {
  const auto preprocessor = make_preprocessor(qwen2);
  for (const char* kwargs :
       {"", R"({"max_pixels": 200704})", R"({"min_pixels": 200704, "max_pixels": 200704})",
        R"({"max_pixels": 3136})", R"({"size": {"shortest_edge": 9, "longest_edge": 200704}})"}) {
    SCOPED_TRACE(kwargs);
    for (const std::uint32_t side : {1u, 37u, 4000u}) {
      EXPECT_NO_THROW(picture_bytes(*preprocessor, side, 4000 / 30, kwargs));
    }
    EXPECT_NO_THROW(picture_bytes(*preprocessor, 20'000, 100, kwargs)) << "200 to 1";
  }
}

TEST(ProcessedPictures, WhatWouldBecomeLargerIsRefusedBeforeItIsMade) {
  const auto preprocessor = make_preprocessor(qwen2);
  for (const char* kwargs :
       {R"({"max_pixels": 12845056})", R"({"max_pixels": 12845056, "min_pixels": 12845056})",
        R"({"size": {"shortest_edge": 300000, "longest_edge": 16777216}})",
        R"({"do_resize": false})"}) {
    SCOPED_TRACE(kwargs);
    expect_too_large([&] { picture_bytes(*preprocessor, 5600, 2800, kwargs); },
                     "limit of 200704 processed pixels");
    const ResolvedParams params = preprocessor->resolve(Modality::image, kwargs);
    expect_too_large([&] { preprocessor->run(noise_image(560, 392, 1), params); },
                     "limit of 200704 processed pixels");
  }
  EXPECT_NO_THROW(picture_bytes(*preprocessor, 448, 448, R"({"max_pixels": 12845056})"))
      << "it does not become larger";
  EXPECT_NO_THROW(picture_bytes(*preprocessor, 448, 448, R"({"do_resize": false})"));
}

TEST(ProcessedPictures, TheServersOverridesAreTheOperatorsToo) {
  const auto smaller = make_preprocessor(qwen2, R"({"image": {"max_pixels": 100352}})");
  expect_too_large([&] { picture_bytes(*smaller, 4000, 4000, R"({"max_pixels": 200704})"); },
                   "limit of 100352 processed pixels");
  const auto larger = make_preprocessor(qwen2, R"({"image": {"max_pixels": 1003520}})");
  EXPECT_NO_THROW(picture_bytes(*larger, 4000, 4000, R"({"min_pixels": 1003520})"));
}

TEST(ProcessedPictures, TheOperatorsBoundIsTheBoundHigherOrLower) {
  const auto larger = make_preprocessor(qwen2, {}, {.max_pixels = 401'408});
  EXPECT_NO_THROW(picture_bytes(*larger, 4000, 4000, R"({"max_pixels": 401408})"));
  expect_too_large([&] { picture_bytes(*larger, 4000, 4000, R"({"max_pixels": 500000})"); },
                   "limit of 401408 processed pixels (--max-processed-pixels)");
  const auto smaller = make_preprocessor(qwen2, {}, {.max_pixels = 50'176});
  expect_too_large([&] { picture_bytes(*smaller, 4000, 4000, ""); },
                   "limit of 50176 processed pixels (--max-processed-pixels)");
  EXPECT_NO_THROW(picture_bytes(*smaller, 224, 224, ""));
  EXPECT_NO_THROW(picture_bytes(*smaller, 4000, 4000, R"({"max_pixels": 50176})"));
}

TEST(ProcessedPictures, ABoundThatNothingCanKeepIsRefusedWithTheConfiguration) {
  const auto expect_refused = [](std::string_view config, const PreprocessLimits& limits,
                                 std::string_view option, std::string_view video = {}) {
    const Failure failure = failure_of([&] { make_preprocessor(config, {}, limits, video); });
    EXPECT_EQ(failure.status(), 400) << failure.message;
    EXPECT_NE(failure.message.find(option), std::string::npos) << failure.message;
  };
  expect_refused(qwen2, {.max_pixels = 3135}, "--max-processed-pixels 3135");
  expect_refused(qwen2, {.max_clip_pixels = 6271}, "--max-processed-clip-pixels 6271");
  expect_refused(qwen3, {.max_clip_pixels = 4095}, "--max-processed-clip-pixels", qwen3_clips);
  expect_refused(clip, {.max_pixels = 50'175}, "--max-processed-pixels 50175");
  expect_refused(whisper, {.max_sound_seconds = 29}, "--max-processed-seconds 29");
  EXPECT_NO_THROW(make_preprocessor(qwen2, {}, {.max_pixels = 3136, .max_clip_pixels = 6272}));
  EXPECT_NO_THROW(make_preprocessor(qwen3, {}, {.max_clip_pixels = 4096}, qwen3_clips));
  EXPECT_NO_THROW(make_preprocessor(clip, {}, {.max_pixels = 50'176}));
  EXPECT_NO_THROW(
      make_preprocessor(whisper, R"({"audio": {"chunk_length": 10}})", {.max_sound_seconds = 10}));
}

TEST(ProcessedPictures, OfClipLikeFamiliesStayOnTheFilesCanvas) {
  const auto preprocessor = make_preprocessor(clip);
  for (const char* kwargs :
       {"", R"({"size": 1000})", R"({"crop_size": 200})",
        R"({"size": {"height": 200, "width": 250}, "do_center_crop": false})"}) {
    EXPECT_NO_THROW(picture_bytes(*preprocessor, 4000, 3000, kwargs)) << kwargs;
  }
  for (const char* kwargs :
       {R"({"crop_size": 225})", R"({"do_center_crop": false})",
        R"({"size": {"height": 4096, "width": 4096}, "do_center_crop": false})",
        R"({"do_resize": false, "do_center_crop": false})"}) {
    SCOPED_TRACE(kwargs);
    expect_too_large([&] { picture_bytes(*preprocessor, 4000, 3000, kwargs); },
                     "limit of 50176 processed pixels");
  }
  const auto larger = make_preprocessor(clip, {}, {.max_pixels = 225 * 225});
  EXPECT_NO_THROW(picture_bytes(*larger, 4000, 3000, R"({"crop_size": 225})"));
  EXPECT_NO_THROW(make_preprocessor(clip, R"({"image": {"crop_size": 4096, "size": 4096}})"));
}

// Field case B83: a small file that preprocessing would blow up.
TEST(ProcessedPictures, WhereTheFileLeavesSizesOpenARequestCanOnlyShrink) {
  const auto open = make_preprocessor(clip, R"({"image": {"do_center_crop": false}})");
  EXPECT_EQ(open->run(noise_image(20, 10, 1), open->resolve(Modality::image, "")).primary().shape,
            (std::vector<std::int64_t>{3, 224, 448}));
  expect_too_large([&] { picture_bytes(*open, 20, 10, R"({"size": 225})"); },
                   "limit of 100352 processed pixels");
  expect_too_large([&] { picture_bytes(*open, 65'000, 100, R"({"size": 225})"); },
                   "processed pixels");
  expect_too_large([&] { picture_bytes(*open, 20'000, 1, ""); }, "limit of 16777216 processed");
  const auto unresized = make_preprocessor(qwen2, R"({"image": {"do_resize": false}})");
  EXPECT_NO_THROW(picture_bytes(*unresized, 4088, 4088, ""));
  expect_too_large([&] { picture_bytes(*unresized, 4200, 4200, ""); }, "limit of 16777216");
}

TEST(ProcessedClips, HaveABoundForFramesAndOneForAllOfThem) {
  const auto preprocessor = make_preprocessor(qwen2, {}, {}, qwen2_clips);
  EXPECT_NO_THROW(clip_bytes(*preprocessor, 1000, 6, ""));
  EXPECT_NO_THROW(clip_bytes(*preprocessor, 224, 5, R"({"min_pixels": 50176})"));
  expect_too_large([&] { clip_bytes(*preprocessor, 1000, 2, R"({"max_pixels": 100352})"); },
                   "limit of 50176 processed pixels");
  expect_too_large([&] { clip_bytes(*preprocessor, 1000, 8, R"({"num_frames": 8})"); },
                   "limit of 301056 processed clip pixels");
  EXPECT_NO_THROW(clip_bytes(*preprocessor, 84, 42, R"({"num_frames": 42})")) << "small ones";
  const auto larger = make_preprocessor(qwen2, {}, {.max_clip_pixels = 401'408}, qwen2_clips);
  EXPECT_NO_THROW(clip_bytes(*larger, 1000, 8, R"({"num_frames": 8})"));
  const auto smaller = make_preprocessor(qwen2, {}, {.max_clip_pixels = 200'704}, qwen2_clips);
  EXPECT_NO_THROW(clip_bytes(*smaller, 1000, 4, ""));
  expect_too_large([&] { clip_bytes(*smaller, 1000, 6, ""); },
                   "limit of 200704 processed clip pixels (--max-processed-clip-pixels)");
  EXPECT_GE(clip_bytes(*preprocessor, 224, 3, ""), 12u * 4 * 224 * 224) << "filled up to four";
}

TEST(ProcessedClips, OfQwen3CountAllFrames) {
  const auto preprocessor = make_preprocessor(qwen3, {}, {}, qwen3_clips);
  ASSERT_EQ(preprocessor->family(), "qwen3_vl");
  for (const std::uint64_t frames : {2u, 5u, 40u, 200u}) {
    EXPECT_NO_THROW(clip_bytes(*preprocessor, 1000, frames, "")) << frames;
  }
  expect_too_large(
      [&] {
        clip_bytes(*preprocessor, 1000, 40,
                   R"({"size": {"shortest_edge": 4096, "longest_edge": 25165824}})");
      },
      "limit of 262144 processed clip pixels");
  expect_too_large([&] { clip_bytes(*preprocessor, 1024, 2, R"({"do_resize": false})"); },
                   "limit of 262144 processed clip pixels");
  const auto larger = make_preprocessor(qwen3, {}, {.max_clip_pixels = 1 << 20}, qwen3_clips);
  EXPECT_NO_THROW(clip_bytes(*larger, 1000, 40, R"({"max_pixels": 1048576})"));
  const auto smaller = make_preprocessor(qwen3, {}, {.max_pixels = 65'536}, qwen3_clips);
  expect_too_large([&] { clip_bytes(*smaller, 1000, 2, ""); }, "limit of 65536 processed pixels");
  EXPECT_NO_THROW(clip_bytes(*smaller, 1000, 40, "")) << "frames of many are smaller";
}

TEST(ProcessedSounds, AreNotFilledUpBeyondTheFilesChunk) {
  const auto preprocessor = make_preprocessor(whisper);
  EXPECT_NO_THROW(preprocessor->resolve(Modality::audio, R"({"chunk_length": 30})"));
  expect_too_large([&] { preprocessor->resolve(Modality::audio, R"({"chunk_length": 31})"); },
                   "limit of 30 processed seconds");
  const auto larger = make_preprocessor(whisper, {}, {.max_sound_seconds = 60});
  EXPECT_NO_THROW(larger->resolve(Modality::audio, R"({"chunk_length": 60})"));
  const auto own = make_preprocessor(whisper, R"({"audio": {"chunk_length": 10}})");
  expect_too_large([&] { own->resolve(Modality::audio, R"({"chunk_length": 30})"); },
                   "limit of 10 processed seconds");
}

}  // namespace
}  // namespace vitrove::test
