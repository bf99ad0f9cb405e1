#include "pool/arena.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace vitrove {
namespace {

bool warns_of(const Arena& arena, const std::string& word) {
  return std::ranges::any_of(arena.warnings(), [&](const std::string& warning) {
    return warning.find(word) != std::string::npos;
  });
}

// What the kernel says of the mapping that holds `address`: the lines of /proc/self/smaps.
std::string mapping_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  std::string found;
  bool is_it = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> first >> dash >> end && dash == '-') {
      is_it = first <= wanted && wanted < end;
    }
    if (is_it) found += line + '\n';
  }
  return found;
}

bool has_flag(const std::string& mapping, const std::string& flag) {
  const auto flags = mapping.find("VmFlags:");
  return flags != std::string::npos && mapping.find(" " + flag, flags) != std::string::npos;
}

// Sanitizers make mlock a no-op, and not every kernel tells of it.
bool locks_are_shown() {
  alignas(4096) static std::byte page[4096];
  if (mlock(page, sizeof page) != 0) return false;
  const bool shown = has_flag(mapping_of(page), "lo");
  munlock(page, sizeof page);
  return shown;
}

TEST(Arena, ReadsTheChosenOptionOfAKernelSwitch) {
  EXPECT_EQ(chosen_option("always within_size advise [never] deny force\n"), "never");
  EXPECT_EQ(chosen_option("[always] never"), "always");
  EXPECT_EQ(chosen_option(""), "");
  EXPECT_EQ(chosen_option("always never"), "");
  EXPECT_EQ(chosen_option("]["), "");
}

TEST(Arena, StartsZeroedAndKeepsWhatIsWritten) {
  const Arena arena({.bytes = 10000});
  ASSERT_EQ(arena.bytes().size(), 10000u);
  EXPECT_TRUE(std::ranges::all_of(arena.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  std::ranges::fill(arena.bytes(), std::byte{7});
  EXPECT_EQ(arena.bytes()[9999], std::byte{7});
  EXPECT_TRUE(arena.warnings().empty());
}

TEST(Arena, HugePagesAreUsedOrTheReasonIsGiven) {
  const Arena arena({.bytes = 3u << 20, .huge_pages = true});
  ASSERT_EQ(arena.bytes().size(), 3u << 20);
  arena.bytes().front() = std::byte{1};
  arena.bytes().back() = std::byte{2};
  if (!arena.warnings().empty()) {
    EXPECT_TRUE(warns_of(arena, "huge pages"));
    EXPECT_GT(arena.warnings().front().size(), std::string("huge pages are off").size());
    return;
  }
  // Set aside ones, or the kernel's promise to use them where it can.
  const std::string mapping = mapping_of(arena.bytes().data());
  const bool is_huge = mapping.find("KernelPageSize:     2048 kB") != std::string::npos;
  EXPECT_TRUE(is_huge || has_flag(mapping, "hg")) << mapping;
}

TEST(Arena, PinnedMemoryIsLockedOrTheReasonIsGiven) {
  const bool shown = locks_are_shown();
  const Arena arena({.bytes = 64 * 1024, .pin_memory = true});
  ASSERT_EQ(arena.bytes().size(), 64u * 1024);
  if (!arena.warnings().empty()) {
    EXPECT_TRUE(warns_of(arena, "RLIMIT_MEMLOCK"));
    return;
  }
  const std::string mapping = mapping_of(arena.bytes().data());
  EXPECT_EQ(has_flag(mapping, "lo"), shown) << mapping;
}

// In a process of its own, without privileges and without a right to lock anything.
[[noreturn]] void pin_without_the_right_to() {
  if (geteuid() == 0 && seteuid(65534) != 0) std::_Exit(2);
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) std::_Exit(3);
  const Arena arena({.bytes = 1u << 20, .pin_memory = true});
  arena.bytes().back() = std::byte{1};
  // Where nothing enforces the limit (sanitizers make mlock a no-op), a lock succeeds and there is
  // nothing to warn of; the arena must say the same as the kernel.
  alignas(4096) static std::byte probe[4096];
  if (mlock(probe, sizeof probe) == 0) {
    std::cerr << "limit not enforced\n";
    std::_Exit(arena.warnings().empty() ? 0 : 4);
  }
  for (const auto& warning : arena.warnings()) std::cerr << warning << '\n';
  std::_Exit(arena.warnings().size() == 1 ? 0 : 5);
}

TEST(Arena, ALockBeyondTheLimitIsAWarningThatNamesTheLimit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(pin_without_the_right_to(), testing::ExitedWithCode(0),
              "RLIMIT_MEMLOCK is .*ulimit -l|limit not enforced");
}

}  // namespace
}  // namespace vitrove
