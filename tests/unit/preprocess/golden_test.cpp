// Tensors of every family, by the word of Pillow and numpy.
#include "preprocess/image_families.h"
#include "support.h"

namespace vitrove::test {
namespace {

// Bytes may only change together with the version: old embeddings would be served for pictures that
// are preprocessed differently by now.
TEST(GoldenTensors, EveryFamilyMakesThePinnedBytes) {
  const nlohmann::json golden = read_json("preprocess/golden.json");
  ASSERT_GT(golden.at("cases").size(), 80u);
  for (const auto& item : golden.at("cases")) {
    SCOPED_TRACE(item.dump());
    const auto preprocessor = load_preprocessor(data_dir() / "preprocess" /
                                                (item.at("config").get<std::string>() + ".json"));
    const RgbImage image =
        noise_image(item.at("from").at(0), item.at("from").at(1), item.at("seed"));
    const PreprocessedItem out =
        preprocessor->run(image, preprocessor->resolve(Modality::image, ""));
    ASSERT_EQ(out.tensors.size(), 1u);
    const Tensor& tensor = out.primary();
    EXPECT_EQ(tensor.name, "pixel_values");
    ASSERT_EQ(tensor.shape, item.at("shape").get<std::vector<std::int64_t>>());
    const auto height = static_cast<std::size_t>(tensor.shape[1]);
    const auto width = static_cast<std::size_t>(tensor.shape[2]);
    for (std::size_t c = 0; c < 3; ++c) {
      const float middle = tensor.floats()[(c * height + height / 2) * width + width / 2];
      EXPECT_NEAR(middle, item.at("middle").at(c).get<double>(), 1e-5);
    }
    EXPECT_EQ(crc_text(tensor.floats()), item.at("crc32"))
        << "if the bytes were meant to change, raise the family's version";
    for (const PipelineVersion& version : preprocessor->versions()) {
      EXPECT_EQ(version.version, golden.at("version").get<std::uint32_t>())
          << "raise the version in tests/data/make_media_fixtures.py as well, and run it";
    }
  }
}

TEST(GoldenTensors, NoFamilyIsWithoutThem) {
  std::map<std::string, bool> is_covered;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "preprocess")) {
    if (entry.path().filename() == "golden.json") continue;
    is_covered[std::string(load_preprocessor(entry.path())->family())] = true;
  }
  for (const ImageFamily& family : image_families()) {
    EXPECT_TRUE(is_covered[std::string(family.name)]) << family.name;
  }
}

}  // namespace
}  // namespace vitrove::test
