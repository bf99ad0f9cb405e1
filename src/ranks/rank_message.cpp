#include "ranks/rank_message.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <string_view>

#include "base/little_endian.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::uint32_t magic = 0x4b525456;  // "VTRK"
constexpr std::uint16_t message_version = 1;
constexpr std::size_t item_bytes = 3 * 32 + 11;
constexpr std::size_t max_body_bytes =
    max_request_id_bytes + max_request_items * (item_bytes + 1) + 256;

[[noreturn]] void refuse(std::string_view why) {
  throw Error(ErrorCode::internal,
              "rank 0 said what this rank does not understand: " + std::string(why));
}

class Writer {
 public:
  template <std::unsigned_integral Number>
  void number(Number value) {
    bytes_.resize(bytes_.size() + sizeof value);
    store_le(bytes_.data() + bytes_.size() - sizeof value, value);
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void flags(const std::vector<bool>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const bool value : values) number(static_cast<std::uint8_t>(value));
  }
  void item(const ValueExpectation& item) {
    raw(item.key.digest.bytes);
    raw(item.model_fingerprint.bytes);
    raw(item.tenant.bytes);
    number(static_cast<std::uint8_t>(item.modality));
    number(static_cast<std::uint8_t>(item.dtype));
    number(item.dim);
    number(static_cast<std::uint8_t>(item.rows.has_value()));
    number(item.rows.value_or(0));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    return load_le<Number>(raw(sizeof(Number)).data());
  }
  std::span<const std::byte> raw(std::size_t size) {
    if (size > rest_.size()) refuse("a message is cut short");
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  Digest256 digest() {
    Digest256 digest;
    std::ranges::copy(raw(digest.bytes.size()), digest.bytes.begin());
    return digest;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) refuse("a flag is neither 0 nor 1");
    return value == 1;
  }
  std::vector<bool> flags() {
    const auto count = number<std::uint32_t>();
    if (count > rest_.size()) refuse("a mask is cut short");
    std::vector<bool> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = flag();
    return values;
  }
  ValueExpectation item() {
    ValueExpectation item;
    item.key.digest = digest();
    item.model_fingerprint = digest();
    item.tenant = digest();
    item.modality = static_cast<Modality>(number<std::uint8_t>());
    item.dtype = static_cast<DType>(number<std::uint8_t>());
    item.dim = number<std::uint32_t>();
    const bool has_rows = flag();
    const auto rows = number<std::uint32_t>();
    if (has_rows) item.rows = rows;
    return item;
  }
  void end() const {
    if (!rest_.empty()) refuse("a message is too long");
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace

MessageHeaderBytes encode_message_header(const MessageHeader& header) {
  MessageHeaderBytes bytes{};
  store_le(bytes.data(), magic);
  store_le(bytes.data() + 4, message_version);
  bytes[6] = static_cast<std::byte>(header.kind);
  bytes[7] = static_cast<std::byte>(header.all_rank_get);
  store_le(bytes.data() + 8, header.number);
  store_le(bytes.data() + 16, header.sequence);
  store_le(bytes.data() + 24, header.body_bytes);
  return bytes;
}

MessageHeader decode_message_header(const MessageHeaderBytes& bytes) {
  if (load_le<std::uint32_t>(bytes.data()) != magic) refuse("no message of ours");
  if (load_le<std::uint16_t>(bytes.data() + 4) != message_version) refuse("another version");
  MessageHeader header;
  header.kind = static_cast<MessageKind>(bytes[6]);
  if (header.kind < MessageKind::plan || header.kind > MessageKind::stop) refuse("unknown kind");
  header.all_rank_get = bytes[7] != std::byte{0};
  header.number = load_le<std::uint64_t>(bytes.data() + 8);
  header.sequence = load_le<std::uint64_t>(bytes.data() + 16);
  header.body_bytes = load_le<std::uint32_t>(bytes.data() + 24);
  if (header.body_bytes > max_body_bytes) refuse("a body beyond all bounds");
  return header;
}

std::vector<std::byte> PlanMessage::encode() const {
  Writer out;
  out.number(static_cast<std::uint32_t>(req_id.size()));
  out.raw(std::as_bytes(std::span(req_id)));
  out.number(static_cast<std::uint8_t>(refused));
  out.raw(digest.bytes);
  out.flags(mask);
  out.number(static_cast<std::uint32_t>(items.size()));
  for (const auto& item : items) out.item(item);
  return out.take();
}

PlanMessage PlanMessage::decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  PlanMessage plan;
  const auto id = in.raw(in.number<std::uint32_t>());
  plan.req_id.resize(id.size());
  std::memcpy(plan.req_id.data(), id.data(), id.size());
  plan.refused = in.flag();
  plan.digest = in.digest();
  plan.mask = in.flags();
  const auto count = in.number<std::uint32_t>();
  if (count > in.left() / item_bytes) refuse("items are missing");
  if (count != 0 && count != plan.mask.size()) refuse("mask and items differ in length");
  for (std::uint32_t i = 0; i < count; ++i) plan.items.push_back(in.item());
  in.end();
  return plan;
}

std::vector<std::byte> OutcomeMessage::encode() const {
  Writer out;
  out.number(static_cast<std::uint8_t>(aborted));
  out.flags(hits);
  return out.take();
}

OutcomeMessage OutcomeMessage::decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  OutcomeMessage outcome;
  outcome.aborted = in.flag();
  outcome.hits = in.flags();
  in.end();
  return outcome;
}

Digest256 digest_of(std::span<const ValueExpectation> items) {
  Writer out;
  for (const auto& item : items) out.item(item);
  return sha256(out.take());
}

}  // namespace vitrove
