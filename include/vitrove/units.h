// Sizes, durations and rates as people write them: "4GiB", "64KiB", "200ms", "1.5s", "200MB/s".
//
// KiB/MiB/GiB/TiB are powers of 1024, kB/KB/MB/GB/TB of 1000, a bare number is bytes (or seconds).
// Throws Error{invalid_argument} naming the text; negative, overflowing and trailing input is bad.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace vitrove {

std::uint64_t parse_bytes(std::string_view text);
std::chrono::microseconds parse_duration(std::string_view text);
// Bytes a second; "/s" is optional.
std::uint64_t parse_rate(std::string_view text);

// Shortest exact-looking form: "4.0 GiB", "1.2 ms".
std::string format_bytes(std::uint64_t bytes);
std::string format_duration(std::chrono::microseconds duration);

}  // namespace vitrove
