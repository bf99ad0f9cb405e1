#include "vitrove/side_data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

std::vector<std::byte> bytes(std::initializer_list<int> numbers) {
  std::vector<std::byte> result;
  for (const int number : numbers) result.push_back(static_cast<std::byte>(number));
  return result;
}

std::vector<std::byte> joined(std::initializer_list<std::vector<std::byte>> parts) {
  std::vector<std::byte> result;
  for (const auto& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

const std::vector<std::byte> grid_123 =
    bytes({1, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0});
const std::vector<std::byte> one_second_per_grid =
    bytes({3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f});

SideData everything() {
  SideData data;
  data.grid = Grid{4, 16, 0xffffffff};
  data.timestamps = {0, 0.5, 1, 1e9};
  data.seconds_per_grid = 0.25;
  data.alias_target = EmbeddingKey{sha256("target")};
  data.sound = SoundLength{3600, 30};
  return data;
}

// Field case B28: what belongs to the rows comes back with them.
TEST(SideData, EveryCombinationOfPartsComesBack) {
  for (int parts = 0; parts < 32; ++parts) {
    SideData data = everything();
    if ((parts & 1) == 0) data.grid.reset();
    if ((parts & 2) == 0) data.timestamps.clear();
    if ((parts & 4) == 0) data.seconds_per_grid.reset();
    if ((parts & 8) == 0) data.alias_target.reset();
    if ((parts & 16) == 0) data.sound.reset();
    const auto encoded = data.encode();
    EXPECT_EQ(encoded.size(), data.encoded_size());
    EXPECT_EQ(SideData::decode(encoded), data) << parts;
  }
}

TEST(SideData, NothingIsNoBytes) {
  EXPECT_TRUE(SideData{}.encode().empty());
  EXPECT_EQ(SideData::decode({}), SideData{});
}

TEST(SideData, HasTheDocumentedBytes) {
  SideData data;
  data.grid = Grid{1, 2, 3};
  data.seconds_per_grid = 1;
  EXPECT_EQ(data.encode(), joined({grid_123, one_second_per_grid}));
}

TEST(SideData, IsAtMost64KiB) {
  SideData data;
  data.timestamps.resize((max_side_bytes - 8) / 8, 1.5);
  EXPECT_EQ(data.encode().size(), max_side_bytes);
  EXPECT_EQ(SideData::decode(data.encode()), data);
  data.timestamps.push_back(1.5);
  try {
    data.encode();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::too_large);
  }
}

TEST(SideData, TimesAreSecondsOfAMedium) {
  constexpr double far = 1e9;
  for (const double odd :
       {std::nan(""), std::numeric_limits<double>::infinity(), -1e-9, -far, 2 * far}) {
    SideData data;
    data.timestamps = {1, odd};
    EXPECT_THROW(data.encode(), Error);
    data.timestamps.clear();
    data.seconds_per_grid = odd;
    EXPECT_THROW(data.encode(), Error);
    data.seconds_per_grid.reset();
    data.sound = SoundLength{odd, 1};
    EXPECT_THROW(data.encode(), Error);
    data.sound = SoundLength{1, odd};
    EXPECT_THROW(data.encode(), Error);
    // As another program may have written it.
    auto record = one_second_per_grid;
    store_le(record.data() + 8, std::bit_cast<std::uint64_t>(odd));
    EXPECT_FALSE(SideData::decode(record)) << odd;
    record[0] = std::byte{2};  // a timestamp
    EXPECT_FALSE(SideData::decode(record)) << odd;
    auto sound = bytes({5, 0, 0, 0, 16, 0, 0, 0});
    sound.resize(24);
    EXPECT_TRUE(SideData::decode(sound));
    for (const std::size_t at : {8U, 16U}) {
      auto odd_sound = sound;
      store_le(odd_sound.data() + at, std::bit_cast<std::uint64_t>(odd));
      EXPECT_FALSE(SideData::decode(odd_sound)) << odd;
    }
  }
  EXPECT_FALSE(SideData::decode(bytes({3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f})));
  EXPECT_FALSE(SideData::decode(bytes({2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0xff})));
}

TEST(SideData, RecordsStandInRisingOrderAndOnce) {
  EXPECT_TRUE(SideData::decode(joined({grid_123, one_second_per_grid})));
  EXPECT_FALSE(SideData::decode(joined({one_second_per_grid, grid_123})));
  EXPECT_FALSE(SideData::decode(joined({grid_123, grid_123})));
}

TEST(SideData, RecordsOfAnotherLengthThanTheirTypeAreRefused) {
  const struct {
    int type;
    int length;
  } odd[] = {{1, 0},  {1, 8}, {1, 16}, {2, 0},  {2, 7}, {2, 9}, {3, 0},
             {3, 16}, {4, 0}, {4, 31}, {4, 33}, {5, 0}, {5, 8}, {5, 24}};
  for (const auto& [type, length] : odd) {
    auto record = bytes({type, 0, 0, 0, length, 0, 0, 0});
    record.resize(record.size() + static_cast<std::size_t>(length));
    EXPECT_FALSE(SideData::decode(record)) << type << " " << length;
  }
}

TEST(SideData, UnknownRecordsAreRefusedUnlessMarkedOptional) {
  EXPECT_FALSE(SideData::decode(bytes({0, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(SideData::decode(bytes({6, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(SideData::decode(bytes({0xff, 0x7f, 0, 0, 0, 0, 0, 0})));
  SideData grid;
  grid.grid = Grid{1, 2, 3};
  EXPECT_EQ(SideData::decode(joined({grid_123, bytes({5, 0x80, 0, 0, 3, 0, 0, 0, 7, 7, 7})})),
            grid);
  EXPECT_EQ(SideData::decode(bytes({0, 0x80, 0, 0, 0, 0, 0, 0})), SideData{});
}

TEST(SideData, AnyCutIsRefusedUnlessItFallsBetweenRecords) {
  const auto whole = everything().encode();
  const std::size_t record_ends[] = {0, 20, 20 + 40, 20 + 40 + 16, 20 + 40 + 16 + 40, whole.size()};
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const bool between =
        std::find(std::begin(record_ends), std::end(record_ends), length) != std::end(record_ends);
    EXPECT_EQ(SideData::decode(std::span(whole).first(length)).has_value(), between) << length;
  }
}

TEST(SideData, ALengthBeyondTheEndIsRefused) {
  EXPECT_FALSE(
      SideData::decode(bytes({2, 0, 0, 0, 0xf8, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0})));
  EXPECT_FALSE(SideData::decode(bytes({0, 0x80, 0, 0, 1, 0, 0, 0})));
}

TEST(SideData, NonZeroPaddingIsRefused) {
  auto record = grid_123;
  record[2] = std::byte{1};
  EXPECT_FALSE(SideData::decode(record));
  record = grid_123;
  record[3] = std::byte{1};
  EXPECT_FALSE(SideData::decode(record));
}

TEST(SideData, MoreThan64KiBIsRefusedEvenIfItCouldBeSkipped) {
  std::vector<std::byte> record(max_side_bytes + 1);
  record[1] = std::byte{0x80};
  store_le(record.data() + 4, static_cast<std::uint32_t>(max_side_bytes + 1 - 8));
  EXPECT_FALSE(SideData::decode(record));
}

}  // namespace
}  // namespace vitrove
