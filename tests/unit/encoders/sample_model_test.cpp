// The sample models that scripts/setup.sh leaves, with real pictures: what a person can judge, and
// what ONNX Runtime answers from Python (tests/data, made by scripts/check_sample_model.py).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "encoders/onnx/onnx_encoder.h"
#include "sample.h"
#include "support.h"
#include "support/paths.h"
#include "vitrove/digest.h"
#include "vitrove/model_fingerprint.h"
#include "vitrove/value_format.h"

namespace vitrove::test {
namespace {

using Json = nlohmann::json;

std::filesystem::path sample_model() { return set_up_file("sample/model"); }
std::filesystem::path tiny_vit() { return set_up_file("sample/tiny-vit"); }

Json reference(const std::string& name) {
  return Json::parse(read_file(vitrove::test::source_dir() / "tests" / "data" / name));
}

// The tensor of scripts/check_sample_model.py's `formula`.
PreprocessedItem formula_item(std::int64_t size) {
  std::vector<float> values(static_cast<std::size_t>(3 * size * size));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7919 % 255) - 127) / 128;
  }
  return float_item({3, size, size}, std::move(values));
}

PreprocessedItem picture_item(const Encoder& encoder, const std::string& name) {
  return preprocess(encoder, sample_picture(name));
}

std::vector<int> best_classes(const std::vector<float>& scores, std::size_t count) {
  std::vector<int> order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(count);
  return order;
}

// Field cases say: within 1e-4, relative to the size of the numbers.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    difference =
        std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return difference / largest;
}

class SampleModelTest : public ::testing::Test {
 protected:
  static OnnxEncoder& encoder() {
    // Loaded once for all tests: it takes longer than most of them.
    static OnnxEncoder loaded(sample_model(), onnx_options());
    return loaded;
  }
};

TEST_F(SampleModelTest, SaysWhatItIs) {
  const EncoderInfo& info = encoder().info();
  EXPECT_EQ(info.name, "efficientnet-lite0");
  EXPECT_EQ(info.dim, 1280U);
  EXPECT_EQ(info.dtype, DType::float32);
  EXPECT_EQ(info.row_meaning, "chw");
  EXPECT_EQ(encoder().token_count(formula_item(224)), 49U);
}

TEST_F(SampleModelTest, CallsACatACat) {
  const auto scores = encoder().run_output(picture_item(encoder(), "chelsea.png"), "logits");
  const int best = best_classes(scores, 1).front();
  EXPECT_GE(best, 281);
  EXPECT_LE(best, 285);
}

TEST_F(SampleModelTest, CallsCoffeeAnEspressoOrACup) {
  const auto scores = encoder().run_output(picture_item(encoder(), "coffee.png"), "logits");
  EXPECT_THAT(best_classes(scores, 1), ::testing::Each(::testing::AnyOf(967, 968)));
}

// Decoding, preprocessing and inference together against Pillow, NumPy and Python's ONNX Runtime.
TEST_F(SampleModelTest, NamesEveryPictureAsThePythonReferenceDoes) {
  const Json known = reference("imagenet_labels_excerpt.json");
  ASSERT_EQ(to_hex(digest_file(sample_model() / "model.onnx")),
            known["model_sha256"].get<std::string>())
      << "the sample model has changed: run scripts/check_sample_model.py --write";
  std::size_t compared = 0;
  for (const Json& picture : known["pictures"]) {
    const auto name = picture["file"].get<std::string>();
    const auto scores = encoder().run_output(picture_item(encoder(), name), "logits");
    const Json& top = picture["top"];
    for (const Json& entry : top) {
      const auto number = entry["class"].get<std::size_t>();
      EXPECT_NEAR(scores[number], entry["logit"].get<double>(), 0.02) << name;
    }
    EXPECT_EQ(best_classes(scores, 1).front(), top.front()["class"].get<int>()) << name;
    ++compared;
  }
  EXPECT_GE(compared, 5U);
}

TEST_F(SampleModelTest, RowsAreThePlacesOfTheFeatureMap) {
  const Json features = reference("imagenet_labels_excerpt.json")["formula"]["features"];
  const auto output = encode_one(encoder(), formula_item(224));
  ASSERT_EQ(output.rows, 49U);
  EXPECT_EQ(output.grid, (Grid{1, 7, 7}));
  const auto rows = floats_of(output);
  for (std::size_t row = 0; row < 49; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 1280; ++i) sum += static_cast<double>(rows[row * 1280 + i]);
    EXPECT_NEAR(sum / 1280, features["row_means"][row].get<double>(), 1e-3) << row;
  }
  for (const Json& strongest : features["row24_strongest"]) {
    EXPECT_NEAR(rows[24 * 1280 + strongest[0].get<std::size_t>()], strongest[1].get<double>(),
                1e-3);
  }
}

// Field case B02: gray, transparent and coloured pictures of all sizes share a batch.
TEST_F(SampleModelTest, AMixedBatchEqualsItsItemsOneByOne) {
  std::vector<PreprocessedItem> items;
  for (const char* name : {"camera.png", "chelsea.png", "horse.png", "rocket.jpg"}) {
    items.push_back(picture_item(encoder(), name));
    EXPECT_EQ(encoder().batch_class(items.back()), encoder().batch_class(items.front()));
  }
  const auto together = encode_all(encoder(), items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto alone = encode_one(encoder(), items[i]);
    EXPECT_EQ(together[i].rows, alone.rows);
    EXPECT_LE(relative_difference(floats_of(together[i]), floats_of(alone)), 1e-4) << i;
    EXPECT_TRUE(all_finite(together[i].bytes, DType::float32));
  }
}

TEST_F(SampleModelTest, OneItemEncodedTwiceGivesTheSameBytes) {
  const auto item = picture_item(encoder(), "coffee.png");
  EXPECT_EQ(encode_one(encoder(), item).bytes, encode_one(encoder(), item).bytes);
}

// Field case B11: whatever the size, a valid grid and 49 rows.
TEST_F(SampleModelTest, DegeneratePicturesAreEncoded) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 60}, {60, 1}, {3, 3}, {223, 225}}) {
    const auto output = encode_one(
        encoder(), preprocess(encoder(), make_picture(static_cast<std::uint32_t>(width),
                                                      static_cast<std::uint32_t>(height))));
    EXPECT_EQ(output.rows, 49U);
    EXPECT_TRUE(all_finite(output.bytes, DType::float32));
  }
}

TEST(TinyVit, RowsAreThoseOfThePythonReference) {
  const Json known = reference("tiny_vit_reference.json");
  const auto encoder = make_encoder("onnx:" + tiny_vit().string(), onnx_options());
  EXPECT_EQ(encoder->info().dim, 32U);
  EXPECT_EQ(encoder->info().row_meaning, "tokens");
  const auto compare = [&](const PreprocessedItem& item, const Json& rows, double tolerance) {
    ASSERT_EQ(encoder->token_count(item), 17U);
    const auto output = encode_one(*encoder, item);
    ASSERT_EQ(output.rows, 17U);
    const auto floats = floats_of(output);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      ASSERT_NEAR(floats[i], rows[i / 32][i % 32].get<double>(), tolerance) << i;
    }
  };
  compare(formula_item(64), known["formula"]["rows"], 1e-3);
  compare(picture_item(*encoder, "chelsea.png"), known["chelsea.png"]["rows"], 5e-3);
}

class TinyVitCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    copy_ = directory_.path() / "tiny";
    std::filesystem::copy(tiny_vit(), copy_);
  }

  static Digest256 fingerprint(const std::filesystem::path& directory) {
    return make_encoder(directory.string(), onnx_options())->info().fingerprint;
  }

  TemporaryDirectory directory_;
  std::filesystem::path copy_;
};

TEST_F(TinyVitCopyTest, RenamingTheDirectoryKeepsTheFingerprint) {
  EXPECT_EQ(fingerprint(copy_), fingerprint(tiny_vit()));
}

// Field case B38: other weights under the same name are another model, with other rows.
TEST_F(TinyVitCopyTest, OneChangedByteOfTheWeightsMakesAnotherModel) {
  std::string model = read_file(copy_ / "model.onnx");
  // A tensor's 128 bytes follow its name.
  const std::size_t weights = model.rfind("final_norm.bias");
  ASSERT_NE(weights, std::string::npos);
  const auto before = fingerprint(copy_);
  model[weights + 40] = static_cast<char>(model[weights + 40] ^ 1);
  write_file(copy_ / "model.onnx", model);
  EXPECT_NE(fingerprint(copy_), before);
}

TEST_F(TinyVitCopyTest, AnotherSeedIsAnotherModelWithOtherRows) {
  const auto python = set_up_file("venv/bin/python");
  const auto script = vitrove::test::source_dir() / "scripts" / "make_tiny_vit.py";
  const auto second = directory_.path() / "seed-2";
  const std::string command = "'" + python.string() + "' '" + script.string() +
                              "' --seed 2 --out '" + second.string() + "' > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0) << "scripts/make_tiny_vit.py failed";

  const auto one = make_encoder(copy_.string(), onnx_options());
  const auto two = make_encoder(second.string(), onnx_options());
  EXPECT_NE(one->info().fingerprint, two->info().fingerprint);
  EXPECT_EQ(one->info().dim, two->info().dim);
  const auto item = formula_item(64);
  EXPECT_NE(encode_one(*one, item).bytes, encode_one(*two, item).bytes);
}

TEST_F(TinyVitCopyTest, AnotherDtypeOfTheSameWeightsIsAnotherModel) {
  const auto wide = make_encoder(copy_.string(), onnx_options());
  Json json = Json::parse(read_file(copy_ / "vitrove.json"));
  json["dtype"] = "float16";
  write_file(copy_ / "vitrove.json", json.dump());
  const auto narrow = make_encoder(copy_.string(), onnx_options());
  EXPECT_NE(narrow->info().fingerprint, wide->info().fingerprint);
  const auto item = formula_item(64);
  const auto output = encode_one(*narrow, item);
  EXPECT_EQ(output.bytes.size(), 17U * 32 * 2);
  EXPECT_LE(
      relative_difference(floats_of(output, DType::float16), floats_of(encode_one(*wide, item))),
      1e-3);
}

}  // namespace
}  // namespace vitrove::test
