#include "server/embedding_reply.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/little_endian.h"

namespace vitrove {
namespace {

// Ordered, so that equal replies are equal bytes and read well.
using Json = nlohmann::ordered_json;

constexpr std::size_t tensor_alignment = 8;

bool share_shape(std::span<const EncodedItem> items) {
  const auto& first = items.front().view;
  return std::ranges::all_of(items, [&](const EncodedItem& item) {
    return item.view.dim() == first.dim() && item.view.dtype() == first.dtype();
  });
}

Json grid_json(const SideData& side) {
  if (!side.grid) return nullptr;
  return Json::array({side.grid->t, side.grid->h, side.grid->w});
}

// Of a sound: a number, else null.
Json sound_json(const SideData& side, double SoundLength::*seconds) {
  return side.sound ? Json(*side.sound.*seconds) : Json(nullptr);
}

Json item_json(const EncodedItem& item, std::uint64_t offset, bool with_dim) {
  const auto& side = item.view.side_data();
  Json entry = {
      {"key", item.key.text()},
      {"modality", to_string(item.modality)},
      {"tokens", item.view.rows()},
      {"offset", offset},
      {"grid", grid_json(side)},
      {"timestamps", side.timestamps.empty() ? Json(nullptr) : Json(side.timestamps)},
      {"seconds_per_grid", side.seconds_per_grid ? Json(*side.seconds_per_grid) : Json(nullptr)},
      {"seconds", sound_json(side, &SoundLength::seconds)},
      {"seconds_used", sound_json(side, &SoundLength::seconds_used)},
      {"source", to_string(item.source)},
      {"encode_ms", static_cast<double>(item.view.encode_cost().count()) / 1000.0}};
  if (with_dim) {
    entry["dim"] = item.view.dim();
    entry["dtype"] = to_string(item.view.dtype());
  }
  return entry;
}

Json metadata_json(const ReplyFrame& frame, std::span<const EncodedItem> items) {
  const bool one_shape = share_shape(items);
  std::uint64_t bytes = 0;
  std::uint64_t rows = 0;
  Json entries = Json::array();
  for (const auto& item : items) {
    entries.push_back(item_json(item, one_shape ? rows : 0, !one_shape));
    bytes += item.view.bytes();
    rows += item.view.rows();
  }
  const auto& first = items.front().view;
  return {{"req_id", frame.req_id},
          {"num_parts", frame.num_parts},
          {"part_idx", frame.part_idx},
          {"embedding_size", bytes},
          {"embedding_len", rows},
          {"embedding_dim", one_shape ? Json(first.dim()) : Json(nullptr)},
          {"dtype", one_shape ? Json(to_string(first.dtype())) : Json(nullptr)},
          {"items", std::move(entries)}};
}

std::string_view safetensors_dtype(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "F32";
    case DType::float16:
      return "F16";
    case DType::bfloat16:
      return "BF16";
  }
  return "F32";
}

Json tensor_json(const EmbeddingView& view, std::uint64_t rows, std::uint64_t begin,
                 std::uint64_t bytes) {
  return {{"dtype", safetensors_dtype(view.dtype())},
          {"shape", Json::array({rows, view.dim()})},
          {"data_offsets", Json::array({begin, begin + bytes})}};
}

Json tensors_json(std::span<const EncodedItem> items) {
  Json tensors = Json::object();
  std::uint64_t bytes = 0;
  if (share_shape(items)) {
    std::uint64_t rows = 0;
    for (const auto& item : items) {
      rows += item.view.rows();
      bytes += item.view.bytes();
    }
    tensors["embedding"] = tensor_json(items.front().view, rows, 0, bytes);
    return tensors;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& view = items[i].view;
    tensors["embedding." + std::to_string(i)] = tensor_json(view, view.rows(), bytes, view.bytes());
    bytes += view.bytes();
  }
  return tensors;
}

// Length, JSON, and blanks up to the alignment that readers may map the tensors with.
std::string safetensors_header(const ReplyFrame& frame, std::span<const EncodedItem> items) {
  Json header = {{"__metadata__", {{"vitrove", metadata_json(frame, items).dump()}}}};
  header.update(tensors_json(items));
  std::string text = header.dump();
  text.append((tensor_alignment - text.size() % tensor_alignment) % tensor_alignment, ' ');
  std::string framed(sizeof(std::uint64_t), '\0');
  store_le(std::as_writable_bytes(std::span(framed)).data(), std::uint64_t{text.size()});
  return framed + text;
}

std::string sources_note(std::span<const EncodedItem> items) {
  std::map<std::string_view, int> counts;
  for (const auto& item : items) ++counts[to_string(item.source)];
  std::string note;
  for (const auto& [source, count] : counts) {
    note += (note.empty() ? "" : " ") + std::string(source) + ":" + std::to_string(count);
  }
  return note;
}

HttpResponse framed_reply(const ReplyFrame& frame, std::span<const EncodedItem> items) {
  HttpResponse response;
  response.req_id = frame.req_id;
  response.note = {static_cast<std::uint32_t>(items.size()), sources_note(items)};
  return response;
}

// What keeps the rows of a reply in place.
struct Payload {
  std::vector<EncodedItem> items;
  std::vector<ByteAllowance::Share> shares;
};
struct PinnedPayload {
  std::shared_ptr<const EncodedItem> item;
  ByteAllowance::Share share;
};

HttpResponse payload_reply(const ReplyFrame& frame, std::span<const EncodedItem> items,
                           std::shared_ptr<void> owner) {
  HttpResponse response = framed_reply(frame, items);
  response.content_type = "application/octet-stream";
  response.body = safetensors_header(frame, items);
  for (const auto& item : items) {
    const auto runs = item.view.runs();
    response.parts.insert(response.parts.end(), runs.begin(), runs.end());
  }
  response.owner = std::move(owner);
  return response;
}

}  // namespace

HttpResponse metadata_reply(const ReplyFrame& frame, std::span<const EncodedItem> items) {
  HttpResponse response = framed_reply(frame, items);
  response.body = metadata_json(frame, items).dump();
  return response;
}

HttpResponse safetensors_reply(const ReplyFrame& frame, std::vector<EncodedItem> items,
                               ReplyBudget& budget) {
  auto payload = std::make_shared<Payload>();
  payload->items = std::move(items);
  std::vector<EmbeddingView*> views;
  for (auto& item : payload->items) views.push_back(&item.view);
  payload->shares = budget.admit(views);
  return payload_reply(frame, payload->items, payload);
}

std::optional<HttpResponse> pinned_safetensors_reply(const ReplyFrame& frame,
                                                     std::shared_ptr<const EncodedItem> item,
                                                     ReplyBudget& budget) {
  auto payload = std::make_shared<PinnedPayload>();
  if (!budget.admit_pinned(item->view, payload->share)) return std::nullopt;
  payload->item = std::move(item);
  return payload_reply(frame, {payload->item.get(), 1}, payload);
}

}  // namespace vitrove
