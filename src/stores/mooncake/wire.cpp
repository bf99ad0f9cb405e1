#include "stores/mooncake/wire.h"

#include <cstring>
#include <type_traits>

namespace vitrove::mooncake::wire {
namespace {

constexpr std::size_t run_bytes = 24;
constexpr std::size_t answer_bytes = 16;

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    payload_.insert(payload_.end(), bytes.begin(), bytes.end());
  }
  void text(const std::string& value) {
    const auto bytes = std::as_bytes(std::span(value));
    payload_.insert(payload_.end(), bytes.begin(), bytes.end());
  }
  Payload take() { return std::move(payload_); }

 private:
  Payload payload_;
};

// Once a read has failed all others fail, so that one look at good() at the end is enough.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename Number>
  Number number() {
    Number value{};
    if (!has(sizeof value)) return value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::string text(std::size_t bytes) {
    if (!has(bytes)) return {};
    std::string value(bytes, '\0');
    std::memcpy(value.data(), rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  bool has(std::size_t bytes) {
    good_ = good_ && rest_.size() >= bytes;
    return good_;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

bool is_type(std::uint16_t value) {
  return (value >= static_cast<std::uint16_t>(Type::setup) &&
          value <= static_cast<std::uint16_t>(Type::remove)) ||
         (value >= static_cast<std::uint16_t>(Type::answer) &&
          value <= static_cast<std::uint16_t>(Type::state));
}

Run read_run(Reader& reader) {
  Run run;
  run.region = reader.number<std::uint32_t>();
  reader.number<std::uint32_t>();
  run.offset = reader.number<std::uint64_t>();
  run.bytes = reader.number<std::uint64_t>();
  return run;
}

std::optional<Item> read_item(Reader& reader) {
  const std::size_t key_bytes = reader.number<std::uint16_t>();
  const std::size_t runs = reader.number<std::uint16_t>();
  if (key_bytes == 0 || key_bytes > max_key_bytes) return std::nullopt;
  Item item;
  item.key = reader.text(key_bytes);
  // Before room is made for them: a number that lies must not cost memory.
  if (!reader.has(runs * run_bytes)) return std::nullopt;
  item.runs.reserve(runs);
  for (std::size_t i = 0; i < runs; ++i) item.runs.push_back(read_run(reader));
  return item;
}

}  // namespace

std::array<std::byte, header_bytes> encode(const Header& header) {
  Writer writer;
  writer.number(magic);
  writer.number(version);
  writer.number(static_cast<std::uint16_t>(header.type));
  writer.number(header.call);
  writer.number(header.payload_bytes);
  writer.number(std::uint32_t{0});
  std::array<std::byte, header_bytes> bytes{};
  std::memcpy(bytes.data(), writer.take().data(), bytes.size());
  return bytes;
}

Payload encode(std::span<const Item> items) {
  Writer writer;
  writer.number(static_cast<std::uint32_t>(items.size()));
  for (const Item& item : items) {
    writer.number(static_cast<std::uint16_t>(item.key.size()));
    writer.number(static_cast<std::uint16_t>(item.runs.size()));
    writer.text(item.key);
    for (const Run& run : item.runs) {
      writer.number(run.region);
      writer.number(std::uint32_t{0});
      writer.number(run.offset);
      writer.number(run.bytes);
    }
  }
  return writer.take();
}

Payload encode(std::span<const Answer> answers) {
  Writer writer;
  writer.number(static_cast<std::uint32_t>(answers.size()));
  for (const Answer& answer : answers) {
    writer.number(answer.code);
    writer.number(answer.size);
  }
  return writer.take();
}

Payload encode(const Region& region) {
  Writer writer;
  writer.number(region.number);
  writer.number(std::uint32_t{0});
  writer.number(region.bytes);
  return writer.take();
}

std::optional<Header> decode_header(std::span<const std::byte, header_bytes> bytes) {
  Reader reader(bytes);
  if (reader.number<std::uint32_t>() != magic) return std::nullopt;
  if (reader.number<std::uint16_t>() != version) return std::nullopt;
  const auto type = reader.number<std::uint16_t>();
  if (!is_type(type)) return std::nullopt;
  Header header;
  header.type = static_cast<Type>(type);
  header.call = reader.number<std::uint64_t>();
  header.payload_bytes = reader.number<std::uint32_t>();
  if (header.payload_bytes > max_payload_bytes) return std::nullopt;
  return header;
}

std::optional<std::vector<Item>> decode_items(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto count = reader.number<std::uint32_t>();
  if (count > max_items) return std::nullopt;
  std::vector<Item> items;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto item = read_item(reader);
    if (!item || !reader.good()) return std::nullopt;
    items.push_back(*std::move(item));
  }
  if (!reader.at_end()) return std::nullopt;
  return items;
}

std::optional<std::vector<Answer>> decode_answers(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto count = reader.number<std::uint32_t>();
  if (count > max_items || !reader.has(count * answer_bytes)) return std::nullopt;
  std::vector<Answer> answers(count);
  for (Answer& answer : answers) {
    answer.code = reader.number<std::int64_t>();
    answer.size = reader.number<std::uint64_t>();
  }
  if (!reader.at_end()) return std::nullopt;
  return answers;
}

std::optional<Region> decode_region(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Region region;
  region.number = reader.number<std::uint32_t>();
  reader.number<std::uint32_t>();
  region.bytes = reader.number<std::uint64_t>();
  if (!reader.at_end() || region.bytes == 0) return std::nullopt;
  return region;
}

bool is_inside(const Run& run, std::uint64_t region_bytes) {
  return run.bytes > 0 && run.offset <= region_bytes && run.bytes <= region_bytes - run.offset;
}

}  // namespace vitrove::mooncake::wire
