// What preprocessing parameters may be, and what they resolve to.
#include "support.h"

namespace vitrove::test {
namespace {

constexpr std::string_view clip = R"({"image_processor_type": "CLIPImageProcessor"})";

ResolvedParams resolve(std::string_view config, std::string_view kwargs,
                       std::string_view overrides = {}) {
  return make_preprocessor(config, overrides)->resolve(Modality::image, kwargs);
}

Failure kwargs_failure(std::string_view kwargs, std::string_view config = clip) {
  return failure_of([&] { resolve(config, kwargs); });
}

// Field case B22: a default and the same value given explicitly make the same key.
TEST(ResolvedParameters, DefaultsAndTheSameValuesGivenAreEqual) {
  const ResolvedParams defaults = resolve(clip, "");
  for (const std::string_view kwargs :
       {R"({})", R"({"size": 224})", R"({"size": {"shortest_edge": 224}})",
        R"({"crop_size": 224, "resample": 3})", R"({"crop_size": {"height": 224, "width": 224}})",
        R"({"do_resize": true, "do_rescale": true, "do_normalize": true, "do_center_crop": true})",
        R"({"image_mean": [0.48145466, 0.4578275, 0.40821073]})", R"({"image_mean": null})",
        R"({"rescale_factor": 0.00392156862745098})", R"({"do_convert_rgb": true})"}) {
    EXPECT_EQ(resolve(clip, kwargs), defaults) << kwargs;
    EXPECT_EQ(resolve(clip, kwargs).canonical(), defaults.canonical()) << kwargs;
  }
}

TEST(ResolvedParameters, AnyChangedValueMakesAnotherKey) {
  std::vector<std::string> forms{resolve(clip, "").canonical()};
  for (const std::string_view kwargs :
       {R"({"size": 225})", R"({"size": {"height": 224, "width": 224}})", R"({"resample": 2})",
        R"({"crop_size": 200})", R"({"crop_size": {"height": 224, "width": 200}})",
        R"({"do_resize": false})", R"({"do_center_crop": false})", R"({"do_rescale": false})",
        R"({"rescale_factor": 0.5})", R"({"do_normalize": false})", R"({"image_mean": 0.5})",
        R"({"image_std": [0.5, 0.5, 0.4]})"}) {
    const std::string form = resolve(clip, kwargs).canonical();
    EXPECT_EQ(std::ranges::count(forms, form), 0) << kwargs;
    forms.push_back(form);
  }
}

TEST(ResolvedParameters, AreCompleteAndTheSameHoweverSpelled) {
  const ResolvedParams params = resolve(clip, R"({"image_std": 1, "rescale_factor": 1})");
  EXPECT_EQ(params.values.size(), 11u);
  EXPECT_EQ(params.values.at("rescale_factor"), ParamValue(1.0));
  EXPECT_EQ(params.values.at("image_std"), ParamValue(std::vector<double>{1, 1, 1}));
  EXPECT_EQ(params.values.at("size.shortest_edge"), ParamValue(std::int64_t{224}));
  EXPECT_EQ(params.values.at("crop_size.width"), ParamValue(std::int64_t{224}));
}

TEST(ResolvedParameters, ANumberThatNoDoubleHoldsIsNamedAsTheFault) {
  const Failure failure = kwargs_failure(R"({"rescale_factor": 1e400})");
  EXPECT_EQ(failure.code, ErrorCode::invalid_argument);
  EXPECT_NE(failure.message.find("number"), std::string::npos) << failure.message;
}

TEST(ResolvedParameters, OverridesOfTheServerReplaceTheFile) {
  const ResolvedParams params = resolve(clip, "", R"({"image": {"size": 336, "crop_size": 336}})");
  EXPECT_EQ(params, resolve(clip, R"({"size": 336, "crop_size": 336})"));
  EXPECT_EQ(resolve(clip, R"({"size": 224})", R"({"image": {"size": 336}})"), resolve(clip, ""));
  EXPECT_NO_THROW(resolve(clip, "", R"({"video": {"fps": 2}, "audio": {}})"));
}

TEST(ResolvedParameters, VideoAndAudioAreNotTaken) {
  const auto preprocessor = make_preprocessor(clip);
  for (const Modality modality : {Modality::video, Modality::audio}) {
    EXPECT_EQ(failure_of([&] { preprocessor->resolve(modality, ""); }).status(), 415);
  }
  EXPECT_EQ(failure_of([&] { preprocessor->video_sampling({}); }).status(), 415);
  EXPECT_EQ(failure_of([&] { preprocessor->run_video({}, {}); }).status(), 415);
  EXPECT_EQ(failure_of([&] { preprocessor->audio_rate({}); }).status(), 415);
  EXPECT_EQ(failure_of([&] { preprocessor->run_audio({}, {}); }).status(), 415);
}

TEST(SamplingParameters, AreResolvedAndComeBack) {
  const auto raw = make_raw_preprocessor();
  const auto sampling = [&](std::string_view kwargs) {
    return raw->video_sampling(raw->resolve(Modality::video, kwargs));
  };
  EXPECT_EQ(sampling(""), VideoSampling{});
  EXPECT_EQ(sampling(R"({"fps": 1, "min_frames": 2, "max_frames": 9})"),
            (VideoSampling{.fps = 1, .min_frames = 2, .max_frames = 9}));
  EXPECT_EQ(sampling(R"({"num_frames": 6})").num_frames, 6u);
  EXPECT_EQ(raw->resolve(Modality::video, R"({"fps": 2.0, "min_frames": null})"),
            raw->resolve(Modality::video, ""));
  EXPECT_NE(raw->resolve(Modality::video, R"({"fps": 1})"), raw->resolve(Modality::video, ""));
}

TEST(SamplingParameters, TheServersDefaultsGiveWayToTheRequest) {
  const auto raw = make_raw_preprocessor(R"({"num_frames": 8})");
  EXPECT_EQ(raw->video_sampling(raw->resolve(Modality::video, "")).num_frames, 8u);
  const auto asked = raw->video_sampling(raw->resolve(Modality::video, R"({"fps": 3})"));
  EXPECT_EQ(asked, (VideoSampling{.fps = 3}));
}

TEST(SamplingParameters, NonsenseIsRefused) {
  const auto raw = make_raw_preprocessor();
  for (const char* kwargs :
       {R"({"fps": 0})", R"({"fps": "2"})", R"({"fps": 1001})", R"({"num_frames": 1})",
        R"({"num_frames": 2.5})", R"({"num_frames": 4, "fps": 1})", R"({"max_frames": 1})",
        R"({"min_frames": 9, "max_frames": 8})", R"({"wings": 2})", "[]"}) {
    EXPECT_EQ(failure_of([&] { raw->resolve(Modality::video, kwargs); }).status(), 400) << kwargs;
  }
  EXPECT_EQ(failure_of([&] { raw->resolve(Modality::image, R"({"fps": 2})"); }).status(), 400);
}

TEST(RequestParameters, UnknownOnesAreNamed) {
  const Failure failure = kwargs_failure(R"({"fps": 2, "size": 224, "max_pixels": 9})");
  EXPECT_EQ(failure.status(), 400);
  for (const char* part : {"fps", "max_pixels", "known", "crop_size"}) {
    EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
  }
  const std::string long_name(5000, 'x');
  const Failure strange = kwargs_failure(R"({"a/b\n": 1, ")" + long_name + "\": 1}");
  EXPECT_LT(strange.message.size(), 500u);
  EXPECT_EQ(strange.message.find('/'), std::string::npos);
}

TEST(Params, OfAStepThatIsLeftOutMayBeAnything) {
  const auto preprocessor = make_preprocessor(clip);
  const ResolvedParams params =
      preprocessor->resolve(Modality::image, R"({"do_normalize": false, "image_std": 0})");
  const PreprocessedItem item = preprocessor->run(noise_image(30, 20, 1), params);
  for (const float value : item.primary().floats()) ASSERT_TRUE(value >= 0 && value <= 1);
}

TEST(RequestParameters, WrongTypesAndRangesAreRefused) {
  for (const std::string_view kwargs : {R"({"size": "224"})",
                                        R"({"size": 0})",
                                        R"({"size": -1})",
                                        R"({"size": 224.5})",
                                        R"({"size": 16385})",
                                        R"({"size": 1e300})",
                                        R"({"size": {}})",
                                        R"({"size": []})",
                                        R"({"size": {"height": 224}})",
                                        R"({"size": {"height": 224, "width": "x"}})",
                                        R"({"size": {"shortest_edge": 9, "longest_edge": 9}})",
                                        R"({"size": true})",
                                        R"({"size": {"height": 16385, "width": 1}})",
                                        R"({"crop_size": {"shortest_edge": 9}})",
                                        R"({"crop_size": {"height": 16385, "width": 1}})",
                                        R"({"do_resize": 1})",
                                        R"({"do_resize": "yes"})",
                                        R"({"resample": 6})",
                                        R"({"resample": -1})",
                                        R"({"resample": "bicubic"})",
                                        R"({"rescale_factor": "x"})",
                                        R"({"image_mean": [1, 2]})",
                                        R"({"image_mean": [1, 2, "x"]})",
                                        R"({"image_std": 0})",
                                        R"({"image_std": [1, 0, 1]})",
                                        R"({"image_std": 1e-300})",
                                        R"({"rescale_factor": 1e300})",
                                        R"({"image_mean": {}})",
                                        R"({"rescale_factor": 1e999})",
                                        "[]",
                                        "3",
                                        "{",
                                        "nonsense",
                                        R"({"size": 224} x)"}) {
    EXPECT_EQ(kwargs_failure(kwargs).status(), 400) << kwargs;
  }
}

TEST(RequestParameters, EachFamilyHasItsOwn) {
  constexpr std::string_view siglip = R"({"image_processor_type": "SiglipImageProcessor"})";
  constexpr std::string_view convnext = R"({"image_processor_type": "ConvNextImageProcessor"})";
  constexpr std::string_view top = R"({"image_processor_type": "EfficientNetImageProcessor"})";
  EXPECT_EQ(kwargs_failure(R"({"do_center_crop": true})", siglip).status(), 400);
  EXPECT_EQ(kwargs_failure(R"({"size": {"shortest_edge": 224}})", siglip).status(), 400);
  EXPECT_EQ(kwargs_failure(R"({"size": {"height": 9, "width": 9}})", convnext).status(), 400);
  EXPECT_EQ(kwargs_failure(R"({"crop_pct": 0})", convnext).status(), 400);
  EXPECT_EQ(kwargs_failure(R"({"crop_pct": 0.9})", clip).status(), 400);
  EXPECT_EQ(resolve(siglip, R"({"size": 224})"), resolve(siglip, ""));
  EXPECT_NE(resolve(convnext, R"({"crop_pct": 0.9})"), resolve(convnext, ""));
  EXPECT_NE(resolve(top, R"({"include_top": false})"), resolve(top, ""));
  EXPECT_NE(resolve(top, R"({"rescale_offset": true})"), resolve(top, ""));
}

TEST(ProcessorConfig, AnUnknownProcessorListsTheKnownOnes) {
  for (const std::string_view config :
       {R"({"image_processor_type": "Qwen9Processor"})", R"({"size": 224})", "",
        R"({"image_processor_type": 5})", R"({"image_processor_type": "Fast"})"}) {
    const Failure failure = failure_of([&] { make_preprocessor(config); });
    EXPECT_EQ(failure.status(), 400) << config;
    EXPECT_NE(failure.message.find("SiglipImageProcessor"), std::string::npos) << failure.message;
  }
}

TEST(ProcessorConfig, KeysThatDoNotConcernUsAreIgnoredButStepsWeLackAreNot) {
  EXPECT_NO_THROW(make_preprocessor(
      R"({"image_processor_type": "CLIPImageProcessor", "processor_class": "CLIPProcessor",
          "_valid_processor_keys": ["a"], "data_format": null, "do_pad": false})"));
  EXPECT_EQ(
      failure_of([] {
        make_preprocessor(R"({"image_processor_type": "CLIPImageProcessor", "do_pad": true})");
      }).status(),
      400);
}

TEST(ProcessorConfig, BadFilesAndOverridesAreRefusedAtTheStart) {
  EXPECT_EQ(failure_of([] { load_preprocessor("/nonexistent/file.json"); }).status(), 404);
  EXPECT_EQ(failure_of([] { load_preprocessor(std::filesystem::temp_directory_path()); }).code,
            ErrorCode::not_found);
  for (const std::string_view config : {"{", "[]", "null"}) {
    EXPECT_EQ(failure_of([&] { make_preprocessor(config); }).status(), 400) << config;
  }
  for (const std::string_view overrides :
       {"[]", R"({"images": {}})", R"({"image": 5})", R"({"image": {"fps": 1}})",
        R"({"image": {"size": "x"}})", R"({"size": 224})"}) {
    EXPECT_EQ(failure_of([&] { make_preprocessor(clip, overrides); }).status(), 400) << overrides;
  }
}

}  // namespace
}  // namespace vitrove::test
