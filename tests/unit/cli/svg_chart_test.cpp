#include "cli/svg_chart.h"

#include <gtest/gtest.h>

namespace vitrove::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SvgChart, NamesAreTextAndNeverMarkup) {
  const std::string svg = svg_of({"a < b & c", "size", "share", {"1 > 0"}, {{"<script>", {50}}}});
  EXPECT_TRUE(has(svg, ">a &lt; b &amp; c<"));
  EXPECT_TRUE(has(svg, ">1 &gt; 0<"));
  EXPECT_TRUE(has(svg, ">&lt;script&gt;<"));
  EXPECT_FALSE(has(svg, "<script>"));
}

TEST(SvgChart, EachLineHasAPointForEachCategory) {
  const std::string svg = svg_of(
      {"t", "x", "y", {"a", "b", "c"}, {{"one", {0, 50, 100}}, {"two", {10, 20, 30}, true}}});
  std::size_t points = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) {
    ++points;
  }
  EXPECT_EQ(points, 6u);
  EXPECT_TRUE(has(svg, "100.0 %")) << "the scale reaches the highest value";
  EXPECT_TRUE(has(svg, "stroke-dasharray"));
  EXPECT_FALSE(has(svg, "nan"));
}

TEST(SvgChart, OneCategoryAndNoLineDrawAFrame) {
  EXPECT_FALSE(has(svg_of({"t", "x", "y", {"a"}, {}}), "nan"));
  EXPECT_FALSE(has(svg_of({"t", "x", "y", {"a"}, {{"zero", {0}}}}), "nan"));
}

}  // namespace
}  // namespace vitrove::cli
