#include "cli/safetensors_file.h"

#include <cerrno>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

using nlohmann::json;

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName dtype_names[] = {
    {DType::float32, "F32"}, {DType::float16, "F16"}, {DType::bfloat16, "BF16"}};

const char* safetensors_name(DType dtype) {
  for (const auto& entry : dtype_names)
    if (entry.dtype == dtype) return entry.name;
  return "F32";
}

DType dtype_of(const std::string& name) {
  for (const auto& entry : dtype_names)
    if (name == entry.name) return entry.dtype;
  throw Error(ErrorCode::internal, "the reply has tensors of type " + name);
}

std::string header_text(const std::vector<NamedRows>& tensors, const std::string& metadata) {
  json header{{"__metadata__", {{"vitrove", metadata}}}};
  std::size_t offset = 0;
  for (const NamedRows& tensor : tensors) {
    const std::size_t row_bytes = std::size_t{tensor.dim} * element_size(tensor.dtype);
    header[tensor.name] = {{"dtype", safetensors_name(tensor.dtype)},
                           {"shape", {tensor.rows.size() / row_bytes, tensor.dim}},
                           {"data_offsets", {offset, offset + tensor.rows.size()}}};
    offset += tensor.rows.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<NamedRows>& tensors,
                       const std::string& metadata) {
  const std::string header = header_text(tensors, metadata);
  const std::string temporary = path + ".part";
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  const auto length = static_cast<std::uint64_t>(header.size());
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(length >> (8 * i));
  out.write(bytes, sizeof bytes);
  out << header;
  for (const NamedRows& tensor : tensors)
    out.write(reinterpret_cast<const char*>(tensor.rows.data()),
              static_cast<std::streamsize>(tensor.rows.size()));
  out.close();
  std::error_code failed(out ? 0 : errno, std::generic_category());
  if (out) std::filesystem::rename(temporary, path, failed);
  if (!out || failed) {
    const std::string why = failed ? errno_text(failed.value()) : "an error of the file system";
    std::filesystem::remove(temporary, failed);
    throw Error(ErrorCode::internal, "cannot write " + path + ": " + why);
  }
}

nlohmann::json first_item(const std::string& metadata) {
  try {
    const json reply = json::parse(metadata);
    json item = reply.at("items").at(0);
    item.erase("offset");  // which is of a reply with several
    if (!item.contains("dim")) {
      item["dim"] = reply.at("embedding_dim");
      item["dtype"] = reply.at("dtype");
    }
    return item;
  } catch (const json::exception& error) {
    throw Error(ErrorCode::internal, "the server's reply is malformed", error.what());
  }
}

SafetensorsReply parse_safetensors(std::string_view body) {
  const Error broken(ErrorCode::internal, "the reply is not a safetensors file");
  if (body.size() < 8) throw broken;
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(body[i]);
  if (length > body.size() - 8) throw broken;
  const json header = json::parse(body.substr(8, length), nullptr, false);
  const std::string_view data = body.substr(8 + length);
  if (!header.is_object()) throw broken;

  SafetensorsReply reply;
  try {
    reply.metadata = header.at("__metadata__").at("vitrove").get<std::string>();
    const json& tensor = header.at("embedding");
    reply.dtype = dtype_of(tensor.at("dtype").get<std::string>());
    reply.dim = tensor.at("shape").at(1).get<std::uint32_t>();
    const auto begin = tensor.at("data_offsets").at(0).get<std::size_t>();
    const auto end = tensor.at("data_offsets").at(1).get<std::size_t>();
    if (begin > end || end > data.size()) throw broken;
    const auto bytes = std::as_bytes(std::span(data.substr(begin, end - begin)));
    reply.rows.assign(bytes.begin(), bytes.end());
  } catch (const json::exception&) {
    throw broken;
  }
  return reply;
}

}  // namespace vitrove::cli
