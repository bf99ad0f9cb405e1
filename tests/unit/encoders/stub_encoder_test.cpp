#include "encoders/stub/stub_encoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"
#include "vitrove/digest.h"
#include "vitrove/encode_batcher.h"
#include "vitrove/value_format.h"

namespace vitrove::test {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Encoder> stub(const std::string& options = "") {
  return make_encoder("stub:" + options);
}

std::vector<std::byte> rows_of(const std::string& options, const RgbImage& image) {
  const auto encoder = stub(options);
  return encode_one(*encoder, preprocess(*encoder, image)).bytes;
}

std::size_t nan_count(const EncoderOutput& output, DType dtype) {
  const auto floats = floats_of(output, dtype);
  return static_cast<std::size_t>(
      std::count_if(floats.begin(), floats.end(), [](float number) { return std::isnan(number); }));
}

// The rows of stub models are the same on every machine and in every version: stores keep them.
TEST(StubEncoder, RowsAreThoseOfTheGoldenDigests) {
  const RgbImage picture = make_picture(37, 23);
  EXPECT_EQ(to_hex(sha256(rows_of("", picture))),
            "ad9f740928e488918dae0021a1f620a54ed8b931bfab0a32ce47b3d8401f21bd");
  EXPECT_EQ(to_hex(sha256(rows_of("dim=7,tokens=3,seed=99", picture))),
            "7b627fe454d63a7f38f426bd94d7d72b470b56b844693562880846d1a2e193d8");
  EXPECT_EQ(to_hex(sha256(rows_of("dtype=float16", picture))),
            "21d17b2a4f054525fa24de45e991d886272f1ecad36eca3134a7ff967cd34788");
  EXPECT_EQ(to_hex(sha256(rows_of("dtype=bfloat16", picture))),
            "d594f8b9dd4acc285c49f6a79c6c08f93e4f451dbb0af8de43d59e189720045a");
}

TEST(StubEncoder, FingerprintsAreThoseOfTheGoldenDigests) {
  EXPECT_EQ(to_hex(stub()->info().fingerprint),
            "07c20811de06cba7d5f30204b84ab56fe941db1f37763116862636eff68c6561");
}

TEST(StubEncoder, SaysWhatItIs) {
  const auto encoder = stub("dim=32,dtype=float16");
  EXPECT_EQ(encoder->info().name, "stub");
  EXPECT_EQ(encoder->info().dim, 32U);
  EXPECT_EQ(encoder->info().dtype, DType::float16);
  EXPECT_EQ(encoder->info().row_meaning, "tokens");
  EXPECT_THAT(encoder->info().modalities,
              ::testing::ElementsAre(Modality::image, Modality::video, Modality::audio));
}

TEST(StubEncoder, NumbersLieBetweenMinusOneAndOneAndUseTheWholeRange) {
  const auto encoder = stub("dim=512,tokens=64");
  const auto floats = floats_of(encode_one(*encoder, preprocess(*encoder, make_picture(9, 9))));
  EXPECT_EQ(floats.size(), 512U * 64);
  const auto [least, most] = std::minmax_element(floats.begin(), floats.end());
  EXPECT_GE(*least, -1.0F);
  EXPECT_LT(*most, 1.0F);
  EXPECT_LT(*least, -0.99F);
  EXPECT_GT(*most, 0.99F);
  double sum = 0;
  for (const float number : floats) sum += static_cast<double>(number);
  EXPECT_NEAR(sum / static_cast<double>(floats.size()), 0, 0.02);
}

TEST(StubEncoder, AnyChangeOfThePictureChangesTheRows) {
  const RgbImage picture = make_picture(30, 150);
  RgbImage other = picture;
  other.pixels.back() ^= 1;
  EXPECT_NE(rows_of("", picture), rows_of("", other));

  RgbImage turned = picture;  // the same bytes in another shape (field case B16)
  std::swap(turned.width, turned.height);
  EXPECT_NE(rows_of("", picture), rows_of("", turned));
}

TEST(StubEncoder, SeedDimTokensAndDtypeMakeOtherModels) {
  const auto original = stub()->info().fingerprint;
  for (const char* options : {"seed=2", "dim=65", "tokens=17", "tokens=16-17", "dtype=float16"}) {
    EXPECT_NE(stub(options)->info().fingerprint, original) << options;
  }
  const RgbImage picture = make_picture(20, 20);
  EXPECT_NE(rows_of("seed=1", picture), rows_of("seed=2", picture));
  EXPECT_NE(rows_of("dim=16,tokens=2", picture), rows_of("dim=32,tokens=1", picture));
}

TEST(StubEncoder, DelayAndFailureDoNotMakeAnotherModel) {
  const auto original = stub()->info().fingerprint;
  for (const char* options : {"delay_ms=5", "fail=error", "fail=nan", "fail=short", "fail=first",
                              "fail=nan,fail_count=2", "seed=1", "tokens=16-16"}) {
    EXPECT_EQ(stub(options)->info().fingerprint, original) << options;
  }
}

TEST(StubEncoder, HalvesAreTheRoundedFloats) {
  const RgbImage picture = make_picture(20, 20);
  const auto full = stub();
  const auto half = stub("dtype=float16");
  const auto wide = encode_one(*full, preprocess(*full, picture));
  std::vector<std::byte> rounded(wide.bytes.size() / 2);
  float32_to_rows(floats_of(wide), DType::float16, rounded);
  EXPECT_EQ(encode_one(*half, preprocess(*half, picture)).bytes, rounded);
}

TEST(StubEncoder, BatchingNeverChangesARow) {
  const auto encoder = stub("tokens=1-100,dim=33");
  std::vector<PreprocessedItem> items;
  for (std::uint32_t i = 0; i < 9; ++i) {
    items.push_back(preprocess(*encoder, make_picture(1 + 40 * i, 1 + 17 * i, i)));
  }
  const auto together = encode_all(*encoder, items);
  ASSERT_EQ(together.size(), items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto alone = encode_one(*encoder, items[i]);
    EXPECT_EQ(together[i].bytes, alone.bytes);
    EXPECT_EQ(together[i].rows, alone.rows);
    EXPECT_EQ(encoder->batch_class(items[i]), encoder->batch_class(items[0]));
  }
}

struct SizeCase {
  std::uint32_t width, height, rows;
};

// Field case B11: sizes at and around multiples of the patch, and degenerate ones.
TEST(StubEncoder, TokensFollowThePictureSizeWithinTheirBounds) {
  const auto encoder = stub("tokens=4-50,dim=2");
  for (const auto& [width, height, rows] :
       {SizeCase{1, 1, 4}, SizeCase{14, 14, 4}, SizeCase{28, 28, 4}, SizeCase{29, 28, 6},
        SizeCase{28, 29, 6}, SizeCase{70, 70, 25}, SizeCase{71, 70, 30}, SizeCase{1, 1000, 50},
        SizeCase{98, 98, 49}, SizeCase{99, 98, 50}, SizeCase{4096, 10, 50}, SizeCase{100, 1, 8}}) {
    const auto item = preprocess(*encoder, make_picture(width, height));
    EXPECT_EQ(encoder->token_count(item), rows) << width << "x" << height;
    const auto output = encode_one(*encoder, item);
    EXPECT_EQ(output.rows, rows) << width << "x" << height;
    EXPECT_EQ(output.bytes.size(), rows * 2U * 4U);
  }
}

TEST(StubEncoder, TheGridIsThePictureInPatchesWhateverTheTokens) {
  const auto encoder = stub("tokens=5");
  EXPECT_EQ(encode_one(*encoder, preprocess(*encoder, make_picture(640, 480))).grid,
            (Grid{1, 35, 46}));
  EXPECT_EQ(encode_one(*encoder, preprocess(*encoder, make_picture(1, 1))).grid, (Grid{1, 1, 1}));
}

TEST(StubEncoder, FailErrorFailsEveryItem) {
  const auto encoder = stub("fail=error");
  const std::vector items{preprocess(*encoder, make_picture(8, 8)),
                          preprocess(*encoder, make_picture(9, 9))};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(failure_of([&] { encode_one(*encoder, items[0]); }).code, ErrorCode::internal);
    EXPECT_EQ(failure_of([&] { encode_all(*encoder, items); }).code, ErrorCode::internal);
  }
}

TEST(StubEncoder, FailNanPlantsOneNanInEveryOutput) {
  for (const char* dtype : {"float32", "float16", "bfloat16"}) {
    const auto encoder = stub("fail=nan,dim=3,tokens=3,dtype=" + std::string(dtype));
    const std::vector items{preprocess(*encoder, make_picture(8, 8)),
                            preprocess(*encoder, make_picture(9, 9))};
    for (const auto& output : encode_all(*encoder, items)) {
      EXPECT_EQ(nan_count(output, encoder->info().dtype), 1U) << dtype;
      EXPECT_FALSE(all_finite(output.bytes, encoder->info().dtype));
      EXPECT_EQ(output.rows, 3U);
    }
  }
}

TEST(StubEncoder, FailShortLeavesOutTheLastRow) {
  const auto encoder = stub("fail=short,dim=4,tokens=3");
  const auto item = preprocess(*encoder, make_picture(8, 8));
  const auto output = encode_one(*encoder, item);
  EXPECT_EQ(output.rows, 2U);
  EXPECT_EQ(output.bytes.size(), 2U * 4 * 4);
  EXPECT_EQ(encoder->token_count(item), 3U) << "the promise stays";
  const auto good = rows_of("dim=4,tokens=3", make_picture(8, 8));
  EXPECT_TRUE(std::equal(output.bytes.begin(), output.bytes.end(), good.begin()));
}

TEST(StubEncoder, FailFirstFailsTheFirstItemAndNoOther) {
  const auto encoder = stub("fail=first");
  const auto item = preprocess(*encoder, make_picture(8, 8));
  EXPECT_EQ(failure_of([&] { encode_one(*encoder, item); }).code, ErrorCode::internal);
  EXPECT_EQ(encode_one(*encoder, item).bytes, rows_of("", make_picture(8, 8)));
}

TEST(StubEncoder, FailCountBoundsTheOtherFailures) {
  const auto encoder = stub("fail=nan,fail_count=2");
  const auto item = preprocess(*encoder, make_picture(8, 8));
  EXPECT_EQ(nan_count(encode_one(*encoder, item), DType::float32), 1U);
  EXPECT_EQ(nan_count(encode_one(*encoder, item), DType::float32), 1U);
  EXPECT_EQ(nan_count(encode_one(*encoder, item), DType::float32), 0U);
}

// How many of three items that run as one batch fail.
int failures_in_a_batch(const std::string& options) {
  std::shared_ptr<Encoder> encoder = stub(options);
  EncodeBatcher batcher(encoder, {.max_batch_size = 3, .max_wait = std::chrono::hours(1)});
  std::vector<std::future<EncodeResult>> futures;
  for (std::uint32_t i = 0; i < 3; ++i) {
    futures.push_back(batcher.submit(
        std::make_shared<PreprocessedItem>(preprocess(*encoder, make_picture(8, 8, i)))));
  }
  int failures = 0;
  for (auto& future : futures) {
    try {
      future.get();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      ++failures;
    }
  }
  return failures;
}

TEST(StubEncoder, InABatchThatIsRepeatedItemByItemFailFirstStillFailsOneItem) {
  EXPECT_EQ(failures_in_a_batch(""), 0);
  EXPECT_EQ(failures_in_a_batch("fail=first"), 1);
  EXPECT_EQ(failures_in_a_batch("fail=error,fail_count=2"), 2);
  EXPECT_EQ(failures_in_a_batch("fail=error"), 3);
}

// Field case B37: too few rows never get past the batcher.
TEST(StubEncoder, InABatchFailShortIsAnErrorOfEachItem) {
  EXPECT_EQ(failures_in_a_batch("fail=short"), 3);
  EXPECT_EQ(failures_in_a_batch("fail=short,fail_count=1"), 1);
}

TEST(StubEncoder, EachItemOfABatchTakesTheDelay) {
  const auto encoder = stub("delay_ms=20");
  const std::vector items{preprocess(*encoder, make_picture(8, 8)),
                          preprocess(*encoder, make_picture(9, 9)),
                          preprocess(*encoder, make_picture(10, 10))};
  const auto start = std::chrono::steady_clock::now();
  encode_all(*encoder, items);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
}

TEST(StubEncoder, TakesNothingButPixelsAndSamples) {
  const auto encoder = stub();
  EXPECT_EQ(failure_of([&] {
              encode_one(*encoder, float_item({2, 2}, counting(4)));
            }).code,
            ErrorCode::internal);
}

TEST(MakeEncoder, RefusesWhatItDoesNotKnowInOneClearLine) {
  struct Case {
    const char* spec;
    const char* message;
  };
  for (const auto& [spec, message] :
       {Case{"", "no encoder is given"}, Case{"tensorrt:/models/a", "unknown kind of encoder"},
        Case{"stub:what=1", "unknown option 'what'"},
        Case{"/no/such/directory", "model directory does not exist"},
        Case{"onnx:/no/such/directory", "model directory does not exist"},
        Case{"./a:b", "model directory does not exist"}}) {
    const Failure failure = failure_of([&] { make_encoder(spec); });
    EXPECT_EQ(failure.code, ErrorCode::invalid_argument) << spec;
    EXPECT_THAT(failure.message, HasSubstr(message)) << spec;
    EXPECT_TRUE(is_one_line(failure.message));
    EXPECT_THAT(failure.message, ::testing::Not(HasSubstr("/no/such")));
  }
  EXPECT_EQ(failure_of([] { make_encoder("stub", {.threads = -1}); }).code,
            ErrorCode::invalid_argument);
}

TEST(MakeEncoder, TheStubsDefaultsForClipsAreTaken) {
  const auto encoder = make_encoder("stub", {.mm_process_config = R"({"video": {"fps": 1}})"});
  const auto& preprocessor = encoder->preprocessor();
  EXPECT_EQ(preprocessor.video_sampling(preprocessor.resolve(Modality::video, "")).fps, 1.0);
}

TEST(StubEncoder, AClipHasAGridOfFramesAndASoundNone) {
  const auto encoder = make_encoder("stub:tokens=1-4096");
  const auto& preprocessor = encoder->preprocessor();
  VideoClip clip;
  clip.frames = {make_picture(30, 20), make_picture(30, 20)};
  clip.timestamps = {0.0, 0.5};
  clip.sample_fps = 2;
  const PreprocessedItem video =
      preprocessor.run_video(clip, preprocessor.resolve(Modality::video, ""));
  EXPECT_EQ(encoder->token_count(video), 2u * 2 * 3);
  EXPECT_EQ(encode_one(*encoder, video).grid, (Grid{2, 2, 3}));
  EXPECT_EQ(video.side.timestamps, clip.timestamps);
  EXPECT_EQ(video.side.seconds_per_grid, 0.5);

  const AudioClip sound{std::vector<float>(16'000, 0.5F), 16'000};
  const PreprocessedItem audio =
      preprocessor.run_audio(sound, preprocessor.resolve(Modality::audio, ""));
  EXPECT_EQ(encoder->token_count(audio), 25u);
  EXPECT_EQ(encode_one(*encoder, audio).grid, std::nullopt);
}

TEST(MakeEncoder, ABareStubHasTheDefaults) {
  EXPECT_EQ(make_encoder("stub")->info().fingerprint, make_encoder("stub:")->info().fingerprint);
}

TEST(MakeEncoder, DefaultsForTheStubsPreprocessorAreRefusedAndNotIgnored) {
  EXPECT_NO_THROW(make_encoder("stub", {.mm_process_config = R"({"image": {}})"}));
  for (const char* config : {"[]", "{", R"({"image": {"max_pixels": 1}})", R"({"smell": {}})",
                             R"({"video": {"fps": 0}})", R"({"audio": {"fps": 1}})"}) {
    EXPECT_EQ(failure_of([&] { make_encoder("stub", {.mm_process_config = config}); }).code,
              ErrorCode::invalid_argument)
        << config;
  }
}

}  // namespace
}  // namespace vitrove::test
