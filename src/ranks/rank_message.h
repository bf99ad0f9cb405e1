// What rank 0's sequencer says: a header of fixed size in one broadcast, and a body in a second one
// where there is one. Little-endian, framed by lengths; whatever is odd is an Error, for ranks of
// different versions must not guess at each other's words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vitrove/digest.h"
#include "vitrove/value_format.h"

namespace vitrove {

enum class MessageKind : std::uint8_t {
  plan = 1,  // a request and its mask
  outcome,   // who loads alone tells what came of it
  vote,      // all ranks now enter all_reduce_min over a request's items
  check,     // all ranks now enter all_reduce_min over the message's number
  stop,      // rank 0 leaves in order
};

struct MessageHeader {
  MessageKind kind = MessageKind::check;
  bool all_rank_get = false;
  std::uint64_t number = 0;    // of the message, from 1
  std::uint64_t sequence = 0;  // of the request; 0: none
  std::uint32_t body_bytes = 0;
};

constexpr std::size_t message_header_size = 32;
using MessageHeaderBytes = std::array<std::byte, message_header_size>;

// Bounds of a request, so that a body is bounded too.
constexpr std::size_t max_request_id_bytes = 4096;
constexpr std::size_t max_request_items = 65536;

MessageHeaderBytes encode_message_header(const MessageHeader& header);
// Throws Error{internal}.
MessageHeader decode_message_header(const MessageHeaderBytes& bytes);

struct PlanMessage {
  std::string req_id;
  bool refused = false;
  Digest256 digest;  // of the items
  std::vector<bool> mask;
  std::vector<ValueExpectation> items;  // where all ranks load, else none

  std::vector<std::byte> encode() const;
  static PlanMessage decode(std::span<const std::byte> bytes);  // throws Error{internal}
};

struct OutcomeMessage {
  bool aborted = false;
  std::vector<bool> hits;  // none in a vote

  std::vector<std::byte> encode() const;
  static OutcomeMessage decode(std::span<const std::byte> bytes);  // throws Error{internal}
};

// Ranks that mean the same items by a request have the same digest.
Digest256 digest_of(std::span<const ValueExpectation> items);

}  // namespace vitrove
