#include "cli/output.h"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "vitrove/units.h"

namespace vitrove::cli {

void Table::print() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    std::puts(line.c_str());
  }
}

std::string shown(std::string_view name, std::size_t most) {
  std::string text;
  const bool is_long = name.size() > most;
  if (is_long) name = name.substr(name.size() - most);
  // A cut must not leave half a character.
  while (is_long && !name.empty() && (static_cast<unsigned char>(name[0]) & 0xc0U) == 0x80U) {
    name.remove_prefix(1);
  }
  if (is_long) text = "...";
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    text += code < 0x20 || code == 0x7f ? '?' : letter;
  }
  return text;
}

Progress::Progress(std::size_t total, bool quiet)
    : total_(total),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      last_line_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (!quiet_ && terminal_ && total_ > 0) std::fputs("\r\033[K", stderr);
}

void Progress::step(const std::string& label) {
  ++done_;
  if (!quiet_) draw(label);
}

void Progress::draw(const std::string& label) {
  if (terminal_) {
    constexpr std::size_t width = 30;
    const std::size_t filled = width * done_ / std::max<std::size_t>(total_, 1);
    const std::string bar = std::string(filled, '=') + std::string(width - filled, ' ');
    std::fprintf(stderr, "\r\033[K[%s] %zu/%zu %s", bar.c_str(), done_, total_,
                 shown(label, 40).c_str());
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  const std::size_t tenth = 10 * done_ / std::max<std::size_t>(total_, 1);
  if (tenth == last_tenth_ && now - last_line_ < std::chrono::seconds(5)) return;
  last_tenth_ = tenth;
  last_line_ = now;
  std::fprintf(stderr, "%zu of %zu done\n", done_, total_);
}

std::string message_of(const Error& error) {
  std::string text = error.what();
  if (!error.detail().empty()) text += ": " + error.detail();
  return shown(text);
}

std::string json_line(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string exact_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t largest_unit = std::uint64_t{1} << 40;
  std::uint64_t unit = 1;
  while (unit < largest_unit && bytes / unit >= 1024) unit *= 1024;
  const bool has_one_digit = bytes % unit * 10 % unit == 0;
  return has_one_digit ? format_bytes(bytes) : std::to_string(bytes) + " B";
}

std::string format_age(std::chrono::system_clock::time_point when) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - when)
          .count();
  if (seconds < 60) return std::to_string(std::max<long long>(seconds, 0)) + " s ago";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 86400) return std::to_string(seconds / 3600) + " h ago";
  return std::to_string(seconds / 86400) + " d ago";
}

}  // namespace vitrove::cli
