#include "base/large_vector.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace vitrove {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;

TEST(LargeVector, IsOfItsSizeAndOfZeros) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, mebi, 8 * mebi - 1, 8 * mebi, 36 * mebi + 5}) {
    const auto bytes = make_large_vector<std::uint8_t>(count);
    EXPECT_EQ(bytes.size(), count);
    EXPECT_EQ(std::ranges::count(bytes, 0), static_cast<std::ptrdiff_t>(count));
  }
  const auto floats = make_large_vector<float>(10 * mebi);
  EXPECT_EQ(floats.size(), 10 * mebi);
  EXPECT_TRUE(std::ranges::all_of(floats, [](float value) { return value == 0; }));
}

// What the kernel notes of the mapping that an address lies in.
std::string flags_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t start = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> start >> dash >> end && dash == '-') {
      is_inside = start <= wanted && wanted < end;
    } else if (is_inside && line.starts_with("VmFlags:")) {
      return line + ' ';
    }
  }
  return {};
}

TEST(LargeVector, AsksForHugePagesWhereMemoryIsMappedAnew) {
  const bool has_them = std::filesystem::exists("/sys/kernel/mm/transparent_hugepage");
  const auto large = make_large_vector<std::uint8_t>(48 * mebi);
  EXPECT_EQ(flags_of(&large[24 * mebi]).find(" hg ") != std::string::npos, has_them);
}

// Of a mapping of its own: what malloc() gives may lie where something large was, with its flags.
TEST(LargeVector, LeavesAloneWhatIsKeptForTheNextOne) {
  constexpr std::size_t bytes = 16 * mebi;
  void* const mapped =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const middle = static_cast<std::byte*>(mapped) + bytes / 2;
  wish_for_huge_pages(mapped, 7 * mebi);
  wish_for_huge_pages(middle, 7 * mebi);
  EXPECT_EQ(flags_of(middle + 3 * mebi).find(" hg "), std::string::npos);
  munmap(mapped, bytes);
}

}  // namespace
}  // namespace vitrove
