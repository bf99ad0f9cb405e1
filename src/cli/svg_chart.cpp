#include "cli/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace vitrove::cli {
namespace {

constexpr double width = 760;
constexpr double height = 460;
constexpr double left = 70;
constexpr double right = 180;  // room for the names of the lines
constexpr double top = 50;
constexpr double bottom = 60;
constexpr std::array colours = {"#3567c4", "#c4682b", "#1a7f5a", "#8a4fbf", "#b3261e", "#3d9ab0"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += letter;
    }
  }
  return out;
}

std::string number(double value) {
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%.1f", value);
  return {text.data(), static_cast<std::size_t>(length)};
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart), most_(round_up(highest())) {}

  std::string draw() {
    svg_ = R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" + number(width) + " " +
           number(height) +
           R"(" font-family="sans-serif" font-size="13">)"
           "\n" +
           R"(<rect width="100%" height="100%" fill="white"/>)"
           "\n";
    text(left, 28, chart_.title, "start", R"( font-size="16" font-weight="bold")");
    draw_side();
    draw_bottom();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_line(chart_.lines[i], i);
    return svg_ + "</svg>\n";
  }

 private:
  double highest() const {
    double most = 0;
    for (const ChartLine& line : chart_.lines) {
      for (const double percent : line.percent) most = std::max(most, percent);
    }
    return most;
  }
  static double round_up(double percent) { return std::max(10.0, std::ceil(percent / 10) * 10); }

  double x_of(std::size_t category) const {
    const std::size_t gaps = std::max<std::size_t>(chart_.categories.size(), 2) - 1;
    return left +
           (width - left - right) * static_cast<double>(category) / static_cast<double>(gaps);
  }
  double y_of(double percent) const {
    return height - bottom - (height - top - bottom) * percent / most_;
  }

  void text(double x, double y, const std::string& words, const char* anchor,
            const std::string& more = {}) {
    svg_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\"" +
            more + ">" + escaped(words) + "</text>\n";
  }

  void draw_side() {
    for (double percent = 0; percent <= most_; percent += 10) {
      const std::string y = number(y_of(percent));
      svg_ += "<path d=\"M" + number(left) + " " + y + "H" + number(width - right) +
              "\" stroke=\"#dfe3e8\"/>\n";
      text(left - 8, y_of(percent) + 4, number(percent) + " %", "end");
    }
    text(0, 0, chart_.side_label, "middle",
         " transform=\"translate(16 " + number((top + height - bottom) / 2) + ") rotate(-90)\"");
  }

  void draw_bottom() {
    for (std::size_t i = 0; i < chart_.categories.size(); ++i) {
      text(x_of(i), height - bottom + 20, chart_.categories[i], "middle");
    }
    text((left + width - right) / 2, height - 14, chart_.bottom_label, "middle");
  }

  void draw_line(const ChartLine& line, std::size_t index) {
    const std::string colour = colours[index % colours.size()];
    const std::string dashes = line.dashed ? " stroke-dasharray=\"6 4\"" : "";
    const std::string stroke = "stroke=\"" + colour + "\" stroke-width=\"2\"" + dashes;
    std::string path;
    for (std::size_t i = 0; i < line.percent.size(); ++i) {
      const std::string x = number(x_of(i));
      const std::string y = number(y_of(line.percent[i]));
      path.append(i == 0 ? "M" : "L").append(x).append(" ").append(y);
      svg_.append("<circle cx=\"").append(x).append("\" cy=\"").append(y);
      svg_.append("\" r=\"3\" fill=\"").append(colour).append("\"/>\n");
    }
    svg_ += "<path d=\"" + path + "\" fill=\"none\" " + stroke + "/>\n";
    const double y = top + 20 * static_cast<double>(index);
    const double x = width - right + 16;
    svg_ += "<path d=\"M" + number(x) + " " + number(y) + "h24\" " + stroke + "/>\n";
    text(x + 32, y + 4, line.name, "start");
  }

  const Chart& chart_;
  const double most_;
  std::string svg_;
};

}  // namespace

std::string svg_of(const Chart& chart) { return Drawing(chart).draw(); }

}  // namespace vitrove::cli
