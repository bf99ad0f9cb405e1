// What commands print: aligned tables, and a progress bar on a terminal (plain lines elsewhere).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "vitrove/error.h"

namespace vitrove::cli {

// Columns as wide as their widest cell; numbers are the caller's to format.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;  // standard output

 private:
  std::vector<std::vector<std::string>> rows_;
};

// A name as people may see it: control characters, which a terminal would follow, as '?', and of a
// long one the end.
std::string shown(std::string_view name, std::size_t most = std::string_view::npos);

// "[=====     ] 12/40 name" on standard error; without a terminal a plain line at every tenth of
// the way, and every few seconds.
class Progress {
 public:
  Progress(std::size_t total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const std::string& label);

 private:
  void draw(const std::string& label);

  std::size_t total_;
  std::size_t done_ = 0;
  bool quiet_;
  bool terminal_;
  std::size_t last_tenth_ = 0;
  std::chrono::steady_clock::time_point last_line_;
};

// One line for people: what is wrong, and the details if there are any.
std::string message_of(const Error& error);

// One line of JSON. Names of files need not be UTF-8: what is none becomes U+FFFD.
std::string json_line(const nlohmann::json& value);

// "1 file", "3 files".
std::string counted(std::size_t count, const char* one, const char* many);

// "768.0 KiB"; in bytes what that would be no exact name of, so that it is not taken for another.
std::string exact_bytes(std::uint64_t bytes);

// "2 min ago", for listings.
std::string format_age(std::chrono::system_clock::time_point when);

}  // namespace vitrove::cli
