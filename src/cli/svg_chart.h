// A line chart as an SVG picture: categories along the bottom, percentages up the side.
#pragma once

#include <string>
#include <vector>

namespace vitrove::cli {

struct ChartLine {
  std::string name;
  std::vector<double> percent;  // one a category
  bool dashed = false;
};

struct Chart {
  std::string title;
  std::string bottom_label;
  std::string side_label;
  std::vector<std::string> categories;  // at least one
  std::vector<ChartLine> lines;
};

std::string svg_of(const Chart& chart);

}  // namespace vitrove::cli
