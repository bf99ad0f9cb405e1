// docs/value-format.md shows a whole value byte by byte. The page and the code must agree.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/paths.h"
#include "vitrove/half.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace {

// The page's example, as its text describes it.
KeyParts example_parts() {
  KeyParts parts;
  parts.content = sha256("a picture");
  parts.model_fingerprint = sha256("a model");
  parts.pipeline = {{"jpeg", 1}, {"clip", 1}};
  parts.preprocessing.values["size"] = std::int64_t{224};
  parts.dtype = DType::float16;
  parts.dim = 4;
  parts.row_meaning = "tokens";
  return parts;
}

std::vector<std::byte> example_value() {
  const std::vector<float> floats{0.5F, 1, -1, 2, 0, 65504, 0.25F, -0.125F};
  std::vector<std::byte> rows(16);
  float32_to_rows(floats, DType::float16, rows);
  SideData side;
  side.grid = Grid{1, 1, 2};
  const auto side_bytes = side.encode();

  PayloadChecksum checksum;
  checksum.update(rows);
  checksum.update(side_bytes);

  ValueHeader header;
  header.key = make_key(example_parts());
  header.model_fingerprint = example_parts().model_fingerprint;
  header.dtype = DType::float16;
  header.rows = 2;
  header.dim = 4;
  header.side_bytes = static_cast<std::uint32_t>(side_bytes.size());
  header.created_us = 1'767'225'600'000'000;
  header.encode_cost_us = 48'000;
  header.payload_checksum = checksum.finish();
  const HeaderBytes head = encode_header(header);

  std::vector<std::byte> value(head.begin(), head.end());
  value.insert(value.end(), rows.begin(), rows.end());
  value.insert(value.end(), side_bytes.begin(), side_bytes.end());
  return value;
}

std::string hexdump(std::span<const std::byte> bytes) {
  std::string dump;
  for (std::size_t at = 0; at < bytes.size(); at += 16) {
    char text[32];
    std::snprintf(text, sizeof text, "%04zx ", at);
    dump += text;
    for (const std::byte byte : bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at))) {
      std::snprintf(text, sizeof text, " %02x", std::to_integer<unsigned>(byte));
      dump += text;
    }
    dump += '\n';
  }
  return dump;
}

// The first fenced block of that kind.
std::string block_of_page(const std::string& kind) {
  std::ifstream file(test::source_dir() / "docs/value-format.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::string fence = "```" + kind + "\n";
  const std::size_t begin = text.find(fence);
  if (begin == std::string::npos) return {};
  const std::size_t end = text.find("```", begin + fence.size());
  return text.substr(begin + fence.size(), end - begin - fence.size());
}

std::vector<std::byte> bytes_of_dump(const std::string& dump) {
  std::vector<std::byte> bytes;
  std::istringstream lines(dump);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;  // the offset
    while (words >> word) bytes.push_back(static_cast<std::byte>(std::stoi(word, nullptr, 16)));
  }
  return bytes;
}

TEST(ValueFormatPage, ShowsTheBytesThatTheCodeWrites) {
  EXPECT_EQ(block_of_page("hexdump"), hexdump(example_value()));
}

TEST(ValueFormatPage, ShowsAValueThatTheCodeBelieves) {
  const auto value = bytes_of_dump(block_of_page("hexdump"));
  ValueHeader header;
  ASSERT_EQ(parse_header(value, value.size(), header), Reject::none);
  EXPECT_EQ(check_value(header, {.key = make_key(example_parts()),
                                 .model_fingerprint = example_parts().model_fingerprint,
                                 .tenant = tenant_digest(""),
                                 .modality = Modality::image,
                                 .dtype = DType::float16,
                                 .dim = 4,
                                 .rows = 2}),
            Reject::none);
  const auto body = std::span(value).subspan(value_header_size);
  PayloadChecksum checksum;
  checksum.update(body);
  EXPECT_EQ(checksum.finish(), header.payload_checksum);
  EXPECT_TRUE(all_finite(body.first(header.payload_bytes()), header.dtype));
  const auto side = SideData::decode(body.subspan(header.payload_bytes()));
  ASSERT_TRUE(side);
  EXPECT_EQ(side->grid, (Grid{1, 1, 2}));
}

TEST(ValueFormatPage, NamesTheKeyOfItsExample) {
  EXPECT_EQ(block_of_page("key"), make_key(example_parts()).text() + "\n");
}

}  // namespace
}  // namespace vitrove
