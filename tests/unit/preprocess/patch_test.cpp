// The Qwen-VL families beyond parity: what is refused, what is resolved, and how patches lie.
#include <cmath>

#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::string_view qwen2 =
    R"({"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor"})";
constexpr std::string_view qwen3 =
    R"({"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor",
        "patch_size": 16, "size": {"shortest_edge": 65536, "longest_edge": 16777216}})";

VideoClip clip_of_noise(std::uint32_t frames, std::uint32_t width, std::uint32_t height) {
  VideoClip clip;
  clip.sample_fps = 2;
  for (std::uint32_t i = 0; i < frames; ++i) {
    clip.frames.push_back(noise_image(width, height, i));
    clip.timestamps.push_back(i * 0.5);
  }
  return clip;
}

TEST(PatchFamilies, AreToldByTheNamesInTheFiles) {
  const auto family = [](std::string_view config, std::string_view video = {}) {
    return std::string(make_preprocessor(config, {}, {}, video)->family());
  };
  EXPECT_EQ(family(qwen2), "qwen2_vl");
  EXPECT_EQ(family(R"({"image_processor_type": "Qwen2_5_VLImageProcessor"})"), "qwen2_vl");
  EXPECT_EQ(family(R"({"video_processor_type": "Qwen2VLVideoProcessor"})"), "qwen2_vl");
  EXPECT_EQ(family(qwen3), "qwen3_vl");
  EXPECT_EQ(family(R"({"image_processor_type": "Qwen2VLImageProcessorFast"})",
                   R"({"video_processor_type": "Qwen3VLVideoProcessor"})"),
            "qwen3_vl");
}

// Field case B11: sides are multiples of what makes a token, or the picture is refused.
TEST(PatchGeometry, EverySizeGivesAFullGridOrAClearError) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams params = preprocessor->resolve(Modality::image, "");
  for (const std::uint32_t width : {1u, 2u, 3u, 13u, 14u, 15u, 27u, 28u, 29u, 400u, 800u, 4096u}) {
    for (const std::uint32_t height : {1u, 3u, 14u, 29u, 400u}) {
      SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
      const RgbImage image = noise_image(width, height, 1);
      const double ratio = double{1.0} * std::max(width, height) / std::min(width, height);
      if (ratio > 200) {
        const Failure failure = failure_of([&] { preprocessor->run(image, params); });
        EXPECT_EQ(failure.status(), 400);
        EXPECT_NE(failure.message.find("200"), std::string::npos) << failure.message;
        EXPECT_EQ(failure_of([&] { preprocessor->bytes_beside(width, height, params); }).status(),
                  400)
            << "before anything is decoded";
        continue;
      }
      const PreprocessedItem item = preprocessor->run(image, params);
      ASSERT_TRUE(item.grid.has_value());
      EXPECT_EQ(item.grid->t, 1u);
      EXPECT_EQ(item.grid->h % 2 + item.grid->w % 2, 0u);
      const std::int64_t patches = std::int64_t{item.grid->h} * item.grid->w;
      EXPECT_EQ(item.primary().shape, (std::vector<std::int64_t>{patches, 3 * 2 * 14 * 14}));
      EXPECT_EQ(item.tokens, patches / 4);
      EXPECT_GE(patches * 14 * 14, 56 * 56);
    }
  }
}

TEST(PatchGeometry, WithoutResizingSidesMustFit) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams params = preprocessor->resolve(Modality::image, R"({"do_resize": false})");
  EXPECT_EQ(preprocessor->run(noise_image(56, 28, 1), params).tokens, 2u);
  EXPECT_EQ(failure_of([&] { preprocessor->run(noise_image(56, 29, 1), params); }).status(), 400);
}

TEST(Patches, LieByTokenWithTheirPixelsByChannelFrameAndRow) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams params = preprocessor->resolve(
      Modality::image, R"({"do_resize": false, "do_normalize": false, "rescale_factor": 1})");
  const RgbImage image = noise_image(56, 56, 9);
  std::size_t place = 0;
  const std::vector<std::pair<std::size_t, std::size_t>> first_patches{
      {0, 0}, {0, 14}, {14, 0}, {14, 14}, {0, 28}};
  const PreprocessedItem item = preprocessor->run(image, params);
  for (const auto& [top, left] : first_patches) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (int frame = 0; frame < 2; ++frame) {
        for (std::size_t y = 0; y < 14; ++y) {
          for (std::size_t x = 0; x < 14; ++x, ++place) {
            ASSERT_EQ(item.primary().floats()[place], image.row(top + y)[3 * (left + x) + c]);
          }
        }
      }
    }
  }
}

TEST(PatchClips, AnOddNumberOfFramesIsFilledUpWithTheLast) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams params = preprocessor->resolve(
      Modality::video, R"({"min_pixels": 3136, "size_rule": "transformers"})");
  const VideoClip odd = clip_of_noise(3, 56, 56);
  VideoClip even = odd;
  even.frames.push_back(even.frames.back());
  even.timestamps.push_back(even.timestamps.back());
  const PreprocessedItem one = preprocessor->run_video(odd, params);
  const PreprocessedItem other = preprocessor->run_video(even, params);
  EXPECT_EQ(one.primary().data, other.primary().data);
  EXPECT_EQ(one.grid, (Grid{2, 4, 4}));
  EXPECT_EQ(one.tokens, 8u);
  EXPECT_EQ(one.side.timestamps, (std::vector<double>{0.25, 1.0}));
  EXPECT_EQ(one.side.seconds_per_grid, 1.0);
  EXPECT_EQ(one.modality, Modality::video);
}

TEST(PatchClips, WhatTheReferenceRefusesIsRefused) {
  const auto preprocessor = make_preprocessor(qwen3);
  const ResolvedParams params = preprocessor->resolve(Modality::video, "");
  EXPECT_EQ(failure_of([&] { preprocessor->run_video({}, params); }).status(), 400);
  EXPECT_EQ(failure_of([&] { preprocessor->run_video(clip_of_noise(1, 64, 64), params); }).status(),
            400)
      << "shorter than a temporal patch";
  EXPECT_EQ(failure_of([&] { preprocessor->run_video(clip_of_noise(2, 64, 31), params); }).status(),
            400)
      << "narrower than a token";
  EXPECT_NO_THROW(preprocessor->run_video(clip_of_noise(2, 64, 32), params));
}

// Field case B22: defaults and the same values given make the same key, others another.
TEST(PatchParameters, AreResolved) {
  const auto preprocessor = make_preprocessor(qwen2);
  const auto resolve = [&](std::string_view kwargs) {
    return preprocessor->resolve(Modality::image, kwargs);
  };
  EXPECT_EQ(resolve(R"({"max_pixels": 1003520, "min_pixels": 3136})"), resolve(""));
  EXPECT_EQ(resolve(R"({"size": {"shortest_edge": 3136, "longest_edge": 1003520}})"), resolve(""));
  EXPECT_EQ(resolve(R"({"patch_size": 14, "merge_size": 2, "jpeg_scaled_decode": false})"),
            resolve(""));
  for (const char* kwargs :
       {R"({"max_pixels": 501760})", R"({"min_pixels": 784})", R"({"resample": 2})",
        R"({"resize_rounding": "torchvision"})", R"({"jpeg_scaled_decode": true})"}) {
    EXPECT_NE(resolve(kwargs), resolve("")) << kwargs;
  }
  EXPECT_NE(preprocessor->resolve(Modality::video, R"({"fps": 1})"),
            preprocessor->resolve(Modality::video, ""));
  EXPECT_EQ(
      preprocessor->video_sampling(preprocessor->resolve(Modality::video, R"({"num_frames": 8})"))
          .num_frames,
      8u);
}

TEST(PatchParameters, SayWhoseSizesClipsHave) {
  const auto preprocessor = make_preprocessor(qwen2);
  const auto resolve = [&](std::string_view kwargs) {
    return preprocessor->resolve(Modality::video, kwargs);
  };
  EXPECT_EQ(resolve(R"({"size_rule": "qwen_vl_utils", "total_pixels": 90316800})"), resolve(""));
  EXPECT_NE(resolve(R"({"size_rule": "transformers"})"), resolve(""));
  EXPECT_NE(resolve(R"({"total_pixels": 1003520})"), resolve(""));
  for (const char* kwargs : {R"({"size_rule": "pillow"})", R"({"total_pixels": 0})"}) {
    EXPECT_EQ(failure_of([&] { resolve(kwargs); }).status(), 400) << kwargs;
  }
  const auto other = make_preprocessor(qwen3);
  EXPECT_EQ(failure_of([&] {
              other->resolve(Modality::video, R"({"size_rule": "transformers"})");
            }).status(),
            400)
      << "has bounds of its own";
}

TEST(PatchParameters, OfTheServerGoByModality) {
  const auto preprocessor = make_preprocessor(
      qwen2, R"({"image": {"max_pixels": 200704}, "video": {"fps": 1, "max_pixels": 100352}})");
  const auto most = [&](Modality modality) {
    return preprocessor->resolve(modality, "").values.at("max_pixels");
  };
  EXPECT_EQ(most(Modality::image), ParamValue(std::int64_t{200'704}));
  EXPECT_EQ(most(Modality::video), ParamValue(std::int64_t{100'352}));
  EXPECT_EQ(preprocessor->video_sampling(preprocessor->resolve(Modality::video, "")).fps, 1);
}

TEST(PatchParameters, OfClipsComeFromTheirOwnFileOrFromThePictures) {
  constexpr std::string_view file =
      R"({"image_processor_type": "Qwen2VLImageProcessor", "max_pixels": 12845056})";
  const auto most = [](const Preprocessor& preprocessor) {
    return preprocessor.resolve(Modality::video, "").values.at("max_pixels");
  };
  EXPECT_EQ(most(*make_preprocessor(file)), ParamValue(std::int64_t{12'845'056}));
  EXPECT_EQ(most(*make_preprocessor(file, {}, {}, R"({"max_pixels": 401408})")),
            ParamValue(std::int64_t{401'408}));
}

TEST(PatchParameters, NonsenseAndTheModelsOwnShapeAreRefused) {
  const auto preprocessor = make_preprocessor(qwen2);
  for (const char* kwargs :
       {R"({"min_pixels": 0})", R"({"max_pixels": 3135})", R"({"max_pixels": 1e9})",
        R"({"max_pixels": 99999999999})", R"({"size": 224})", R"({"size": {"shortest_edge": 9}})",
        R"({"size": []})", R"({"patch_size": 16})", R"({"merge_size": 1})",
        R"({"temporal_patch_size": 1})", R"({"resize_rounding": "up"})",
        R"({"resize_rounding": "torchvision", "resample": 1})", R"({"image_std": 0})",
        R"({"crop_size": 9})", R"({"fps": 2})", "[]"}) {
    EXPECT_EQ(failure_of([&] { preprocessor->resolve(Modality::image, kwargs); }).status(), 400)
        << kwargs;
  }
  EXPECT_EQ(failure_of([&] {
              preprocessor->resolve(Modality::video, R"({"jpeg_scaled_decode": true})");
            }).status(),
            400);
  EXPECT_EQ(failure_of([&] { preprocessor->resolve(Modality::audio, ""); }).status(), 415);
}

// Two rules make two clips of one file, so the rule is part of the key.
TEST(PatchClips, TheRuleOfSamplingIsResolved) {
  const ResolvedParams by_pairs = make_preprocessor(qwen2)->resolve(Modality::video, "");
  const auto preprocessor = make_preprocessor(qwen3);
  const ResolvedParams one_by_one = preprocessor->resolve(Modality::video, R"({"num_frames": 5})");
  EXPECT_FALSE(by_pairs.values.contains("frame_sampling"));
  EXPECT_EQ(one_by_one.values.at("frame_sampling"), ParamValue(std::string("qwen3_vl")));
  EXPECT_EQ(preprocessor->video_sampling(one_by_one),
            (VideoSampling{.rule = SamplingRule::qwen3_vl, .num_frames = 5}));
  EXPECT_EQ(failure_of([&] {
              preprocessor->resolve(Modality::video, R"({"frame_sampling": "qwen_vl_utils"})");
            }).status(),
            400);
}

TEST(ScaledDecoding, IsOffUnlessItIsAskedForAndKeepsTheGrid) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams off = preprocessor->resolve(Modality::image, "");
  const ResolvedParams on = preprocessor->resolve(
      Modality::image, R"({"jpeg_scaled_decode": true, "max_pixels": 100352})");
  EXPECT_EQ(preprocessor->jpeg_reduction(4000, 3000, off), 1u);
  const std::uint32_t reduction = preprocessor->jpeg_reduction(4000, 3000, on);
  EXPECT_GE(reduction, 2u);
  const auto grid = [&](std::uint32_t width, std::uint32_t height) {
    return preprocessor->run(noise_image(width, height, 1), on).grid;
  };
  EXPECT_EQ(grid(4000 / reduction, 3000 / reduction), grid(4000, 3000));
  EXPECT_EQ(preprocessor->jpeg_reduction(400, 300, on), 1u) << "small enough as it is";
  const auto clip = make_preprocessor(R"({"image_processor_type": "CLIPImageProcessor"})");
  EXPECT_EQ(clip->jpeg_reduction(4000, 3000,
                                 clip->resolve(Modality::image, R"({"jpeg_scaled_decode": true})")),
            4u);
  EXPECT_EQ(clip->jpeg_reduction(4000, 3000, clip->resolve(Modality::image, "")), 1u);
}

TEST(PatchMemory, CoversTensorAndResizedPictures) {
  const auto preprocessor = make_preprocessor(qwen2);
  const ResolvedParams params = preprocessor->resolve(Modality::image, "");
  const std::uint64_t need = preprocessor->bytes_beside(1120, 896, params);
  EXPECT_GE(need, 1120u * 896 * (24 + 3)) << "two frames of floats, and the bytes";
  EXPECT_LE(need, 1120u * 896 * 33);
}

}  // namespace
}  // namespace vitrove::test
