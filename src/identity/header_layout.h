// Where each field of a value's header stands (docs/value-format.md). Private to the value format
// and to tests that forge headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "vitrove/value_format.h"

namespace vitrove::header_layout {

constexpr std::array<char, 8> magic_text{'V', 'I', 'T', 'R', 'O', 'V', 'E', '\0'};

constexpr std::size_t magic = 0;                // 8 bytes
constexpr std::size_t format_version = 8;       // u16
constexpr std::size_t min_reader_version = 10;  // u16
constexpr std::size_t kind = 12;                // u8
constexpr std::size_t modality = 13;            // u8
constexpr std::size_t dtype = 14;               // u8
constexpr std::size_t codec = 15;               // u8
constexpr std::size_t rows = 16;                // u32
constexpr std::size_t dim = 20;                 // u32
constexpr std::size_t payload_bytes = 24;       // u64
constexpr std::size_t raw_bytes = 32;           // u64
constexpr std::size_t side_bytes = 40;          // u32
constexpr std::size_t checksum_algorithm = 44;  // u8
constexpr std::size_t zeros_1 = 45;             // 3 bytes
constexpr std::size_t created_us = 48;          // u64
constexpr std::size_t encode_cost_us = 56;      // u64
constexpr std::size_t key = 64;                 // 32 bytes
constexpr std::size_t model_fingerprint = 96;   // 32 bytes
constexpr std::size_t tenant = 128;             // 32 bytes
constexpr std::size_t payload_checksum = 160;   // 16 bytes
constexpr std::size_t zeros_2 = 176;            // 40 bytes, then 32 for a MAC
constexpr std::size_t header_checksum = 248;    // u64, over all before it

constexpr std::uint8_t plain_codec = 0;
constexpr std::uint8_t xxh3_128_algorithm = 1;

static_assert(header_checksum + sizeof(std::uint64_t) == value_header_size);

// Writes the header's own checksum.
void seal(HeaderBytes& header);

}  // namespace vitrove::header_layout
