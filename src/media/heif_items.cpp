#include "media/heif_items.h"

#include <algorithm>
#include <map>
#include <vector>

#include "media/coded_size.h"
#include "media/iso_boxes.h"

namespace vitrove {
namespace {

constexpr std::uint64_t beyond_all = std::uint64_t{1} << 62;  // more is not told apart
constexpr int deepest_picture = 8;                            // pictures made of pictures
// Items, extents, properties and references in all: a picture of gigapixels in tiles has a tenth.
constexpr std::size_t most_entries = 200'000;

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return std::min(beyond_all, a + b); }

struct Configuration {
  enum class Codec : std::uint8_t { other, hevc, av1 };
  Codec codec = Codec::other;
  CodedSize size;
};

struct Extent {
  bool is_in_box = false;  // of item data, instead of the file
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct Item {
  std::vector<Extent> extents;
  std::vector<std::size_t> properties;  // counted from 1
  std::vector<std::uint64_t> made_of;   // other items
  std::uint64_t coded_pixels = 0;
  std::uint64_t work_pixels = 0;
  bool is_counted = false;
};

// Version and flags, which stand first in most boxes of a meta box.
struct Head {
  explicit Head(BoxReader& reader) : version(reader.take(1)), flags(reader.take(3)) {}
  std::uint64_t version;
  std::uint64_t flags;
};

Configuration hevc_configuration(std::span<const std::byte> body) {
  Configuration configuration{Configuration::Codec::hevc, {}};
  BoxReader reader(body);
  reader.skip(22);
  for (std::uint64_t arrays = reader.take(1); arrays > 0 && !reader.is_empty(); --arrays) {
    reader.skip(1);
    for (std::uint64_t units = reader.take(2); units > 0 && !reader.is_empty(); --units) {
      const auto length = std::min<std::size_t>(reader.take(2), reader.rest().size());
      configuration.size = larger(configuration.size, hevc_unit_size(reader.rest().first(length)));
      reader.skip(length);
    }
  }
  return configuration;
}

Configuration configuration_of(const IsoBox& box) {
  if (box.type == "hvcC") return hevc_configuration(box.body);
  if (box.type != "av1C") return {};
  return {Configuration::Codec::av1,
          av1_size(box.body.subspan(std::min<std::size_t>(4, box.body.size())))};
}

class HeifItems {
 public:
  explicit HeifItems(std::span<const std::byte> file) : file_(file) {
    auto rest = file;
    while (const auto box = take_box(rest)) {
      if (box->type == "meta")
        read_meta(box->body.subspan(std::min<std::size_t>(4, box->body.size())));
    }
  }

  HeifClaims claims() {
    HeifClaims claims;
    if (entries_ > most_entries) {
      claims.work_pixels = beyond_all;
      return claims;
    }
    for (auto& [id, item] : items_) {
      for (const Extent& extent : item.extents)
        claims.item_bytes = sum(claims.item_bytes, length_of(extent));
    }
    // Else reading them would take longer than the file allows.
    if (claims.item_bytes > 2 * file_.size()) return claims;
    for (auto& [id, item] : items_) item.coded_pixels = coded_pixels(item);
    for (auto& [id, item] : items_) {
      claims.largest_pixels = std::max(claims.largest_pixels, item.coded_pixels);
      claims.work_pixels = std::max(claims.work_pixels, work_of(item, 0));
    }
    return claims;
  }

 private:
  // Counts can be claimed that take no bytes, and entries take more memory than file.
  bool may_note_one() { return ++entries_ <= most_entries; }

  void read_meta(std::span<const std::byte> rest) {
    while (const auto box = take_box(rest)) {
      if (box->type == "idat") item_data_ = box->body;
      if (box->type == "iloc") read_locations(box->body);
      if (box->type == "iref") read_references(box->body);
      if (box->type == "iprp") read_properties(box->body);
    }
  }

  void read_properties(std::span<const std::byte> rest) {
    while (const auto box = take_box(rest)) {
      if (box->type == "ipma") read_associations(box->body);
      if (box->type != "ipco") continue;
      auto inside = box->body;
      while (const auto property = take_box(inside)) {
        if (!may_note_one()) return;
        configurations_.push_back(configuration_of(*property));
      }
    }
  }

  void read_associations(std::span<const std::byte> body) {
    BoxReader reader(body);
    const Head head(reader);
    const std::size_t index_bytes = (head.flags & 1) != 0 ? 2 : 1;
    const std::uint64_t index_mask = index_bytes == 2 ? 0x7fff : 0x7f;
    for (std::uint64_t entries = reader.take(4); entries > 0 && !reader.is_empty(); --entries) {
      if (!may_note_one()) return;
      Item& item = items_[reader.take(head.version < 1 ? 2 : 4)];
      for (std::uint64_t count = reader.take(1); count > 0 && !reader.is_empty(); --count) {
        if (!may_note_one()) return;
        item.properties.push_back(reader.take(index_bytes) & index_mask);
      }
    }
  }

  void read_references(std::span<const std::byte> body) {
    BoxReader reader(body);
    const Head head(reader);
    const std::size_t id_bytes = head.version == 0 ? 2 : 4;
    auto rest = reader.rest();
    while (const auto box = take_box(rest)) {
      if (box->type != "dimg" && box->type != "auxl") continue;
      BoxReader ids(box->body);
      std::uint64_t user = ids.take(id_bytes);
      for (std::uint64_t count = ids.take(2); count > 0 && !ids.is_empty(); --count) {
        if (!may_note_one()) return;
        std::uint64_t used = ids.take(id_bytes);
        // An auxiliary picture, such as the alpha of another, names the one it belongs to.
        if (box->type == "auxl") {
          items_[used].made_of.push_back(user);
        } else {
          items_[user].made_of.push_back(used);
        }
      }
    }
  }

  void read_locations(std::span<const std::byte> body) {
    BoxReader reader(body);
    const Head head(reader);
    const std::uint64_t sizes = reader.take(2);
    const std::size_t offset_bytes = sizes >> 12 & 15;
    const std::size_t length_bytes = sizes >> 8 & 15;
    const std::size_t base_bytes = sizes >> 4 & 15;
    const std::size_t index_bytes = head.version == 0 ? 0 : sizes & 15;
    const std::size_t id_bytes = head.version < 2 ? 2 : 4;
    for (std::uint64_t items = reader.take(id_bytes); items > 0 && !reader.is_empty(); --items) {
      if (!may_note_one()) return;
      Item& item = items_[reader.take(id_bytes)];
      const std::uint64_t method = head.version == 0 ? 0 : reader.take(2) & 15;
      reader.skip(2);
      const std::uint64_t base = reader.take(base_bytes);
      for (std::uint64_t count = reader.take(2); count > 0 && !reader.is_empty(); --count) {
        if (!may_note_one()) return;
        reader.skip(index_bytes);
        const std::uint64_t offset = base + reader.take(offset_bytes);
        item.extents.push_back({method == 1, offset, reader.take(length_bytes)});
      }
    }
  }

  std::span<const std::byte> bytes_of(const Extent& extent) const {
    const auto whole = extent.is_in_box ? item_data_ : file_;
    if (extent.offset > whole.size()) return {};
    const auto rest = whole.subspan(extent.offset);
    return extent.length == 0 ? rest
                              : rest.first(std::min<std::uint64_t>(extent.length, rest.size()));
  }

  std::uint64_t length_of(const Extent& extent) const { return bytes_of(extent).size(); }

  std::uint64_t coded_pixels(const Item& item) const {
    CodedSize largest;
    bool is_hevc = false;
    bool is_av1 = false;
    for (const std::size_t nth : item.properties) {
      if (nth == 0 || nth > configurations_.size()) continue;
      const Configuration& configuration = configurations_[nth - 1];
      largest = larger(largest, configuration.size);
      is_hevc = is_hevc || configuration.codec == Configuration::Codec::hevc;
      is_av1 = is_av1 || configuration.codec == Configuration::Codec::av1;
    }
    if (!is_hevc && !is_av1) return 0;
    const std::vector<std::byte> data = data_of(item);
    if (is_hevc) largest = larger(largest, hevc_size(data));
    if (is_av1) largest = larger(largest, av1_size(data));
    return std::min(beyond_all, largest.pixels());
  }

  std::vector<std::byte> data_of(const Item& item) const {
    std::vector<std::byte> data;
    for (const Extent& extent : item.extents) {
      const auto bytes = bytes_of(extent);
      data.insert(data.end(), bytes.begin(), bytes.end());
    }
    return data;
  }

  // Each item once: one that is made of itself is beyond all limits, as is one that is made of
  // pictures of pictures of pictures...
  // NOLINTNEXTLINE(misc-no-recursion): no deeper than `deepest_picture`
  std::uint64_t work_of(Item& item, int depth) {
    if (item.is_counted) return item.work_pixels;
    if (depth >= deepest_picture) return beyond_all;
    item.is_counted = true;
    item.work_pixels = beyond_all;
    std::uint64_t work = item.coded_pixels;
    for (const std::uint64_t id : item.made_of) work = sum(work, work_of(items_[id], depth + 1));
    item.work_pixels = work;
    return work;
  }

  std::size_t entries_ = 0;
  const std::span<const std::byte> file_;
  std::span<const std::byte> item_data_;
  std::map<std::uint64_t, Item> items_;
  std::vector<Configuration> configurations_;
};

}  // namespace

HeifClaims heif_claims(std::span<const std::byte> file) { return HeifItems(file).claims(); }

}  // namespace vitrove
