// What commands print: aligned tables, and a progress bar on a terminal (plain lines elsewhere).
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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

// "[=====     ] 12/40 name" on standard error; without a terminal one line every few seconds.
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
  std::chrono::steady_clock::time_point last_line_;
};

// One line of JSON. Names of files need not be UTF-8: what is none becomes U+FFFD.
std::string json_line(const nlohmann::json& value);

// "2 min ago", for listings.
std::string format_age(std::chrono::system_clock::time_point when);

}  // namespace vitrove::cli
