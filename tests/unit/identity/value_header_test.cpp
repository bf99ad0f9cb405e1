#include <cstring>
#include <functional>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "base/little_endian.h"
#include "identity/header_layout.h"
#include "vitrove/error.h"
#include "vitrove/side_data.h"
#include "vitrove/value_format.h"

namespace vitrove {
namespace {

namespace at = header_layout;

ValueHeader plain_header() {
  ValueHeader header;
  header.key.digest = sha256("key");
  header.model_fingerprint = sha256("model");
  header.tenant = tenant_digest("acme");
  header.modality = Modality::video;
  header.dtype = DType::bfloat16;
  header.rows = 576;
  header.dim = 1024;
  header.side_bytes = 20;
  header.created_us = 1'760'000'000'000'000;
  header.encode_cost_us = 48'000;
  header.payload_checksum.fill(std::byte{0x5a});
  return header;
}

ValueHeader alias_header() {
  ValueHeader header = plain_header();
  header.kind = ValueKind::alias;
  header.rows = 0;
  header.side_bytes = 40;
  return header;
}

Reject parse(const HeaderBytes& bytes, std::uint64_t object_bytes) {
  ValueHeader ignored;
  return parse_header(bytes, object_bytes, ignored);
}

// A header changed by somebody who knows how to redo its checksum.
HeaderBytes forged(const ValueHeader& header, const std::function<void(std::byte*)>& change) {
  HeaderBytes bytes = encode_header(header);
  change(bytes.data());
  header_layout::seal(bytes);
  return bytes;
}

template <typename Number>
HeaderBytes forged(const ValueHeader& header, std::size_t offset, Number number) {
  return forged(header, [&](std::byte* bytes) { store_le(bytes + offset, number); });
}

TEST(ValueHeader, ComesBackAsItWas) {
  for (const ValueHeader& header : {plain_header(), alias_header()}) {
    ValueHeader back;
    ASSERT_EQ(parse_header(encode_header(header), header.value_bytes(), back), Reject::none);
    EXPECT_EQ(back, header);
  }
}

TEST(ValueHeader, TheLeastEmbeddingIsOneElement) {
  ValueHeader header;
  header.rows = 1;
  header.dim = 1;
  EXPECT_EQ(header.value_bytes(), 260U);
  EXPECT_EQ(parse(encode_header(header), 260), Reject::none);
}

TEST(ValueHeader, TheMostSideDataIs64KiB) {
  ValueHeader header = plain_header();
  header.side_bytes = max_side_bytes;
  EXPECT_EQ(parse(encode_header(header), header.value_bytes()), Reject::none);
}

TEST(ValueHeader, MoreBytesThanTheHeaderMayBeGiven) {
  const ValueHeader header = plain_header();
  const HeaderBytes bytes = encode_header(header);
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.resize(5000, std::byte{0xee});
  ValueHeader back;
  EXPECT_EQ(parse_header(longer, header.value_bytes(), back), Reject::none);
}

// Field case B45.
TEST(ValueHeader, NoSingleBitCanFlipUnseen) {
  const ValueHeader header = plain_header();
  const HeaderBytes good = encode_header(header);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    HeaderBytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_NE(parse(bad, header.value_bytes()), Reject::none) << "bit " << bit;
  }
}

TEST(ValueHeader, IsTruncatedBelow256Bytes) {
  const ValueHeader header = plain_header();
  const HeaderBytes bytes = encode_header(header);
  ValueHeader out;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(parse_header(std::span(bytes).first(length), header.value_bytes(), out),
              Reject::truncated);
  }
  EXPECT_EQ(parse_header(bytes, 255, out), Reject::truncated);
  EXPECT_EQ(parse_header({}, 0, out), Reject::truncated);
}

TEST(ValueHeader, SaysWhatIsWrongFirstThingsFirst) {
  const ValueHeader header = plain_header();
  const std::uint64_t size = header.value_bytes();
  HeaderBytes bytes = encode_header(header);
  bytes[at::magic] = std::byte{'v'};
  EXPECT_EQ(parse(bytes, size), Reject::magic);
  bytes = encode_header(header);
  bytes[at::format_version] = std::byte{0};
  EXPECT_EQ(parse(bytes, size), Reject::version);
  bytes = encode_header(header);
  bytes[at::rows] ^= std::byte{1};
  EXPECT_EQ(parse(bytes, size), Reject::header_checksum);
  EXPECT_EQ(parse(HeaderBytes{}, size), Reject::magic);
}

TEST(ValueHeader, ReadsALaterVersionThatAllowsIt) {
  const auto versioned = [](std::uint16_t format, std::uint16_t min_reader, bool new_field) {
    return forged(plain_header(), [&](std::byte* bytes) {
      store_le(bytes + at::format_version, format);
      store_le(bytes + at::min_reader_version, min_reader);
      if (new_field) bytes[at::zeros_2] = std::byte{1};
    });
  };
  const std::uint64_t size = plain_header().value_bytes();
  EXPECT_EQ(parse(versioned(1, 1, false), size), Reject::none);
  EXPECT_EQ(parse(versioned(1, 1, true), size), Reject::reserved);
  EXPECT_EQ(parse(versioned(2, 1, true), size), Reject::none);
  EXPECT_EQ(parse(versioned(65535, 1, false), size), Reject::none);
  EXPECT_EQ(parse(versioned(2, 2, false), size), Reject::version);
  EXPECT_EQ(parse(versioned(1, 2, false), size), Reject::version);
  EXPECT_EQ(parse(versioned(1, 0, false), size), Reject::version);
  EXPECT_EQ(parse(versioned(0, 0, false), size), Reject::version);
}

TEST(ValueHeader, EachReservedByteMustBeZero) {
  std::vector<std::size_t> reserved;
  for (std::size_t i = at::zeros_1; i < at::created_us; ++i) reserved.push_back(i);
  for (std::size_t i = at::zeros_2; i < at::header_checksum; ++i) reserved.push_back(i);
  EXPECT_EQ(reserved.size(), 3U + 40U + 32U);
  for (const std::size_t offset : reserved) {
    const auto bytes = forged(plain_header(), offset, std::uint8_t{0x80});
    EXPECT_EQ(parse(bytes, plain_header().value_bytes()), Reject::reserved) << offset;
  }
}

// Field case B86: a value planted by somebody who can write to the store.
TEST(ValueHeader, FieldsOutsideTheirRangeAreRefused) {
  const ValueHeader header = plain_header();
  const std::uint64_t size = header.value_bytes();
  for (const std::uint8_t odd : {0, 3, 99, 255}) {
    EXPECT_EQ(parse(forged(header, at::kind, odd), size), Reject::range) << int{odd};
  }
  for (const std::uint8_t odd : {0, 4, 99, 255}) {
    EXPECT_EQ(parse(forged(header, at::modality, odd), size), Reject::range) << int{odd};
    EXPECT_EQ(parse(forged(header, at::dtype, odd), size), Reject::range) << int{odd};
  }
  for (const std::uint8_t odd : {1, 255}) {
    EXPECT_EQ(parse(forged(header, at::codec, odd), size), Reject::range) << int{odd};
  }
  for (const std::uint8_t odd : {0, 2, 255}) {
    EXPECT_EQ(parse(forged(header, at::checksum_algorithm, odd), size), Reject::range) << int{odd};
  }
  for (const std::uint32_t odd : {0U, 1U, 575U, 577U, 0xffffffffU}) {
    EXPECT_EQ(parse(forged(header, at::rows, odd), size), Reject::range) << odd;
  }
  for (const std::uint32_t odd : {0U, 1U, 1023U, 1025U, 0xffffffffU}) {
    EXPECT_EQ(parse(forged(header, at::dim, odd), size), Reject::range) << odd;
  }
  for (const std::uint32_t odd : {65537U, 0xffffffffU}) {
    EXPECT_EQ(parse(forged(header, at::side_bytes, odd), size), Reject::range) << odd;
  }
  for (const std::uint64_t odd :
       {std::uint64_t{0}, header.payload_bytes() - 1, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    EXPECT_EQ(parse(forged(header, at::payload_bytes, odd), size), Reject::range) << odd;
    EXPECT_EQ(parse(forged(header, at::raw_bytes, odd), size), Reject::range) << odd;
  }
}

TEST(ValueHeader, ASizeThatDoesNotFit64BitsIsRefused) {
  struct Shape {
    std::uint32_t rows;
    std::uint32_t dim;
  };
  // Rows of 4-byte elements: 2^66 and 2^64 bytes in all, and 2^64 - 16, which only the header's 256
  // bytes push over.
  for (const Shape& shape : {Shape{0xffffffff, 0xffffffff}, Shape{0x80000000, 0x80000000},
                             Shape{0xfffffffc, 0x40000001}}) {
    const std::uint64_t wrapped = shape.rows * (std::uint64_t{shape.dim} * 4);
    const auto bytes = forged(plain_header(), [&](std::byte* raw) {
      store_le(raw + at::dtype, std::uint8_t{1});
      store_le(raw + at::rows, shape.rows);
      store_le(raw + at::dim, shape.dim);
      store_le(raw + at::payload_bytes, wrapped);
      store_le(raw + at::raw_bytes, wrapped);
      store_le(raw + at::side_bytes, std::uint32_t{512});
    });
    for (const std::uint64_t object :
         {256 + wrapped + 512, std::uint64_t{4096}, ~std::uint64_t{0}}) {
      EXPECT_EQ(parse(bytes, object), Reject::range) << shape.rows << " x " << shape.dim;
    }
  }
}

// Field case B56: an object of another size than its header says.
TEST(ValueHeader, TheObjectMustHaveTheSizeThatTheHeaderSays) {
  const ValueHeader header = plain_header();
  const HeaderBytes bytes = encode_header(header);
  for (const std::uint64_t size :
       {std::uint64_t{256}, header.value_bytes() - 1, header.value_bytes() + 1,
        header.value_bytes() - 20, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_EQ(parse(bytes, size), Reject::size) << size;
  }
  const auto more_side_data = forged(header, at::side_bytes, std::uint32_t{21});
  EXPECT_EQ(parse(more_side_data, header.value_bytes()), Reject::size);
  EXPECT_EQ(parse(more_side_data, header.value_bytes() + 1), Reject::none);
}

TEST(ValueHeader, AnAliasHasATargetAndNoRows) {
  const ValueHeader alias = alias_header();
  EXPECT_EQ(alias.value_bytes(), 256U + 40U);
  EXPECT_EQ(parse(encode_header(alias), 296), Reject::none);
  EXPECT_EQ(parse(forged(alias, at::rows, 1U), 296), Reject::range);
  EXPECT_EQ(parse(forged(alias, at::side_bytes, 39U), 295), Reject::range);
  EXPECT_EQ(parse(forged(alias, at::side_bytes, 0U), 256), Reject::range);
  EXPECT_EQ(parse(forged(alias, at::kind, std::uint8_t{1}), 296), Reject::range);
}

TEST(ValueHeader, WhatIsRefusedLeavesTheOutputAlone) {
  const ValueHeader header = plain_header();
  ValueHeader out = alias_header();
  EXPECT_EQ(parse_header(encode_header(header), 1, out), Reject::truncated);
  EXPECT_EQ(parse_header(encode_header(header), 1000, out), Reject::size);
  EXPECT_EQ(out, alias_header());
}

TEST(ValueHeader, WhatNoReaderWouldTakeIsNeverWritten) {
  const std::vector<std::function<void(ValueHeader&)>> changes{
      [](ValueHeader& h) { h.rows = 0; },
      [](ValueHeader& h) { h.dim = 0; },
      [](ValueHeader& h) { h.side_bytes = max_side_bytes + 1; },
      [](ValueHeader& h) { h.kind = ValueKind{0}; },
      [](ValueHeader& h) { h.modality = Modality{4}; },
      [](ValueHeader& h) { h.dtype = DType{0}; },
      [](ValueHeader& h) { h.kind = ValueKind::alias; },
      [](ValueHeader& h) { h.dtype = DType::float32, h.rows = h.dim = 0xffffffff; },
  };
  for (const auto& change : changes) {
    ValueHeader header = plain_header();
    change(header);
    EXPECT_THROW(encode_header(header), Error);
  }
}

ValueExpectation expectation_of(const ValueHeader& header) {
  return {header.key,    header.model_fingerprint,
          header.tenant, header.modality,
          header.dtype,  header.dim,
          header.rows};
}

TEST(CheckValue, AcceptsWhatIsExpected) {
  EXPECT_EQ(check_value(plain_header(), expectation_of(plain_header())), Reject::none);
  ValueExpectation any_rows = expectation_of(plain_header());
  any_rows.rows.reset();
  EXPECT_EQ(check_value(plain_header(), any_rows), Reject::none);
}

// Field cases B19, B26, B45: the right place in the store is no proof.
TEST(CheckValue, SaysInWhatAValueDiffers) {
  const auto check_with = [](auto change) {
    ValueExpectation expected = expectation_of(plain_header());
    change(expected);
    return check_value(plain_header(), expected);
  };
  using E = ValueExpectation;
  EXPECT_EQ(check_with([](E& e) { e.key.digest = sha256("another"); }), Reject::key);
  EXPECT_EQ(check_with([](E& e) { e.key.digest.bytes[31] ^= std::byte{1}; }), Reject::key);
  EXPECT_EQ(check_with([](E& e) { e.model_fingerprint = sha256("other weights"); }), Reject::model);
  EXPECT_EQ(check_with([](E& e) { e.tenant = tenant_digest(""); }), Reject::tenant);
  EXPECT_EQ(check_with([](E& e) { e.tenant = tenant_digest("eve"); }), Reject::tenant);
  EXPECT_EQ(check_with([](E& e) { e.modality = Modality::image; }), Reject::shape);
  EXPECT_EQ(check_with([](E& e) { e.dtype = DType::float16; }), Reject::shape);
  EXPECT_EQ(check_with([](E& e) { e.dim = 1023; }), Reject::shape);
  EXPECT_EQ(check_with([](E& e) { e.rows = 577; }), Reject::shape);
}

TEST(CheckValue, AnAliasIsCheckedForAllButItsShape) {
  ValueExpectation expected = expectation_of(plain_header());
  EXPECT_EQ(check_value(alias_header(), expected), Reject::none);
  expected.tenant = tenant_digest("eve");
  EXPECT_EQ(check_value(alias_header(), expected), Reject::tenant);
  expected = expectation_of(plain_header());
  expected.model_fingerprint = sha256("other weights");
  EXPECT_EQ(check_value(alias_header(), expected), Reject::model);
  expected = expectation_of(plain_header());
  expected.key.digest = sha256("another");
  EXPECT_EQ(check_value(alias_header(), expected), Reject::key);
  expected = expectation_of(plain_header());
  expected.modality = Modality::image;
  EXPECT_EQ(check_value(alias_header(), expected), Reject::shape);
}

TEST(Reject, EachReasonHasAMetricLabelOfItsOwn) {
  std::set<std::string_view> names;
  for (int reason = 0; reason <= static_cast<int>(Reject::not_finite); ++reason) {
    names.insert(to_string(static_cast<Reject>(reason)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Reject::not_finite) + 1);
  EXPECT_EQ(to_string(Reject::payload_checksum), "payload_checksum");
  EXPECT_EQ(names.count("unknown"), 0U);
}

}  // namespace
}  // namespace vitrove
