#include <array>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "base/unique_fd.h"

namespace vitrove {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

UniqueFd open_null() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(UniqueFd, ClosesAtTheEndOfItsLife) {
  int number = -1;
  {
    const UniqueFd file = open_null();
    ASSERT_TRUE(file);
    number = file.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovesItsDescriptorAlong) {
  UniqueFd first = open_null();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(second.get(), number);

  UniqueFd third = open_null();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(is_open(replaced));
  EXPECT_TRUE(is_open(number));
}

TEST(UniqueFd, HandsItsDescriptorOutOnRelease) {
  UniqueFd file = open_null();
  const int number = file.release();
  EXPECT_FALSE(file);
  EXPECT_TRUE(is_open(number));
  const UniqueFd owner(number);
}

TEST(UniqueFd, IsEmptyWhenOpeningFailed) {
  const UniqueFd file(::open("/dev/null/nothing", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(file);
}

TEST(LittleEndian, PutsTheLowByteFirstAtAnyAlignment) {
  std::array<std::byte, 9> bytes{};
  store_le(bytes.data() + 1, std::uint64_t{0x0102030405060708});
  EXPECT_EQ(bytes[1], std::byte{8});
  EXPECT_EQ(bytes[8], std::byte{1});
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data() + 1), 0x0102030405060708U);
  EXPECT_EQ(load_le<std::uint32_t>(bytes.data() + 1), 0x05060708U);
  EXPECT_EQ(load_le<std::uint16_t>(bytes.data() + 1), 0x0708U);
  EXPECT_EQ(load_le<std::uint8_t>(bytes.data() + 1), 0x08U);
}

}  // namespace
}  // namespace vitrove
