// Clips become tensors frame by frame: what is in memory does not grow with the frames' size in the
// file.
#include "parity_fixtures.h"
#include "vitrove/memory_budget.h"

namespace vitrove::test {
namespace {

// As published with Qwen3-VL.
constexpr std::string_view qwen3 =
    R"({"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor",
        "size": {"shortest_edge": 65536, "longest_edge": 16777216}, "patch_size": 16})";
constexpr std::string_view qwen3_clips =
    R"({"video_processor_type": "Qwen3VLVideoProcessor", "patch_size": 16,
        "size": {"shortest_edge": 4096, "longest_edge": 25165824}})";

struct Streamed {
  PreprocessedItem item;
  std::uint64_t peak = 0;
};

Streamed stream(const std::string& file, const Preprocessor& preprocessor,
                std::uint64_t budget_bytes, std::string_view kwargs) {
  const auto bytes = file_bytes(data_dir() / file);
  const ResolvedParams params = preprocessor.resolve(Modality::video, kwargs);
  MemoryBudget budget(budget_bytes);
  DecodeContext context{.budget = &budget};
  context.bytes_beside = [&](const MediaShape& shape) {
    return preprocessor.video_bytes_beside(shape, params);
  };
  const auto run = preprocessor.start_video(params);
  const StreamedVideo video =
      decode_video(bytes, preprocessor.video_sampling(params), {}, *run, context);
  return {run->finish(video.times), budget.peak()};
}

TEST(ClipRun, TwoMinutesOfHdFitIntoTheDefaultBudget) {
  const auto preprocessor = make_preprocessor(qwen3, {}, {}, qwen3_clips);
  const Streamed streamed = stream("parity/long_hd.mp4", *preprocessor, std::uint64_t{1} << 30, "");
  ASSERT_TRUE(streamed.item.grid);
  EXPECT_EQ(streamed.item.grid->t, 120u);
  EXPECT_EQ(streamed.item.side.timestamps.size(), 120u);
  const std::uint64_t tensor = streamed.item.primary().bytes().size();
  EXPECT_LT(streamed.peak, tensor + (std::uint64_t{200} << 20)) << "240 frames are 1.5 GB";
}

TEST(ClipRun, GivesWhatFramesInMemoryGive) {
  const auto preprocessor = make_preprocessor(qwen3, {}, {}, qwen3_clips);
  for (const char* file : {"parity/odd.gif", "clips/exact.mov", "clips/turned.mp4"}) {
    SCOPED_TRACE(file);
    for (const char* kwargs : {"", R"({"num_frames": 5})", R"({"num_frames": 30})"}) {
      const ResolvedParams params = preprocessor->resolve(Modality::video, kwargs);
      const VideoClip clip =
          decode_video(file_bytes(data_dir() / file), preprocessor->video_sampling(params), {})
              .clip;
      const PreprocessedItem whole = preprocessor->run_video(clip, params);
      const Streamed streamed = stream(file, *preprocessor, std::uint64_t{64} << 20, kwargs);
      EXPECT_EQ(streamed.item.feature_digest(), whole.feature_digest()) << kwargs;
    }
  }
}

TEST(ClipRun, BeginsAnewWhenTheFileHasOtherFramesThanItsPacketsTold) {
  const auto preprocessor = make_preprocessor(qwen3, {}, {}, qwen3_clips);
  const ResolvedParams params = preprocessor->resolve(Modality::video, "");
  const auto run = preprocessor->start_video(params);
  run->begin({.width = 64, .height = 64, .frames = 8});
  for (std::uint32_t i = 0; i < 3; ++i) run->take(noise_image(64, 64, 90 + i));
  VideoClip clip;
  clip.sample_fps = 2;
  run->begin({.width = 64, .height = 64, .frames = 3});
  for (std::uint32_t i = 0; i < 3; ++i) {
    clip.frames.push_back(noise_image(64, 64, i));
    clip.timestamps.push_back(i * 0.5);
    run->take(clip.frames.back());
  }
  EXPECT_EQ(run->finish(clip).feature_digest(),
            preprocessor->run_video(clip, params).feature_digest());
}

TEST(ClipRun, AWrongNumberOfFramesIsNoTensor) {
  const auto preprocessor = make_preprocessor(qwen3, {}, {}, qwen3_clips);
  const ResolvedParams params = preprocessor->resolve(Modality::video, "");
  const auto run = preprocessor->start_video(params);
  run->begin({.width = 64, .height = 64, .frames = 4});
  for (std::uint32_t i = 0; i < 2; ++i) run->take(noise_image(64, 64, i));
  EXPECT_EQ(failure_of([&] { run->finish({}); }).code, ErrorCode::internal);
  for (std::uint32_t i = 0; i < 2; ++i) run->take(noise_image(64, 64, i));
  EXPECT_EQ(failure_of([&] { run->take(noise_image(64, 64, 9)); }).code, ErrorCode::internal);
}

}  // namespace
}  // namespace vitrove::test
