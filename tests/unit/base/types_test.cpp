#include "vitrove/types.h"

#include <gtest/gtest.h>

namespace vitrove {
namespace {

TEST(Types, ModalitiesSurviveTheirNames) {
  for (auto modality : {Modality::image, Modality::video, Modality::audio}) {
    EXPECT_EQ(parse_modality(to_string(modality)), modality);
  }
  EXPECT_EQ(to_string(Modality::video), "video");
}

TEST(Types, DTypesSurviveTheirNames) {
  for (auto dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(to_string(DType::bfloat16), "bfloat16");
}

TEST(Types, UnknownNamesAreNothing) {
  for (std::string_view text : {"", "Image", "images", "fp16", "float", "float64", " float32"}) {
    EXPECT_FALSE(parse_modality(text)) << text;
    EXPECT_FALSE(parse_dtype(text)) << text;
  }
}

TEST(Types, NumbersOfTheStoredEnumsNeverChange) {
  EXPECT_EQ(static_cast<int>(Modality::image), 1);
  EXPECT_EQ(static_cast<int>(Modality::video), 2);
  EXPECT_EQ(static_cast<int>(Modality::audio), 3);
  EXPECT_EQ(static_cast<int>(DType::float32), 1);
  EXPECT_EQ(static_cast<int>(DType::float16), 2);
  EXPECT_EQ(static_cast<int>(DType::bfloat16), 3);
}

TEST(Types, AnElementIsTwoOrFourBytes) {
  EXPECT_EQ(element_size(DType::float32), 4U);
  EXPECT_EQ(element_size(DType::float16), 2U);
  EXPECT_EQ(element_size(DType::bfloat16), 2U);
}

}  // namespace
}  // namespace vitrove
