// Decodes files as the server does, and says what came out: one line of JSON a file.
//
//   decode_files DIRECTORY < LIST
//
// LIST has lines `image PATH`, `video PATH` or `audio:RATE PATH`. Upright pixels (of clips all
// frames that are taken), or mono samples as float32, go to DIRECTORY/N, N counting from 0. What
// the server would refuse is a line with the code and the message of its reply.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "vitrove/audio.h"
#include "vitrove/error.h"
#include "vitrove/memory_budget.h"
#include "vitrove/video.h"

namespace vitrove::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t room = std::uint64_t{1} << 30;  // --max-decode-bytes of `serve`
constexpr std::string_view audio_prefix = "audio:";

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

template <typename Value>
void append(std::ofstream& out, const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

json decode(const std::string& kind, std::span<const std::byte> bytes, const DecodeContext& context,
            std::ofstream& out) {
  if (kind == "image") {
    const DecodedImage decoded = decode_image(bytes, {}, context);
    append(out, decoded.image.pixels);
    return {{"width", decoded.image.width}, {"height", decoded.image.height}};
  }
  if (kind == "video") {
    const VideoClip clip = decode_video(bytes, {}, {}, context).clip;
    for (const RgbImage& frame : clip.frames) append(out, frame.pixels);
    return {{"width", clip.frames.front().width},
            {"height", clip.frames.front().height},
            {"timestamps", clip.timestamps},
            {"seconds", clip.seconds}};
  }
  const auto rate = static_cast<std::uint32_t>(std::stoul(kind.substr(audio_prefix.size())));
  const AudioClip clip = decode_audio(bytes, rate, {}, context).clip;
  append(out, clip.samples);
  return {{"samples", clip.samples.size()}, {"rate", clip.rate}};
}

json report(const std::string& kind, const fs::path& path, const fs::path& target) {
  const std::vector<std::byte> bytes = bytes_of(path);
  MemoryBudget budget(room);
  std::ofstream out(target, std::ios::binary);
  const auto start = std::chrono::steady_clock::now();
  json line;
  try {
    line = decode(kind, bytes, {.budget = &budget}, out);
  } catch (const Error& error) {
    line = {{"status", http_status(error.code())},
            {"message", error.what()},
            {"detail", error.detail()}};
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  line["took"] = took.count();
  line["peak"] = budget.peak();
  line["format"] = to_string(sniff(bytes));
  return line;
}

int run(const fs::path& directory) {
  std::string kind;
  std::string path;
  for (std::size_t number = 0; std::cin >> kind && std::getline(std::cin >> std::ws, path);) {
    std::cout << report(kind, path, directory / std::to_string(number++)).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace vitrove::test

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: decode_files DIRECTORY < LIST\n";
    return 2;
  }
  return vitrove::test::run(arguments[1]);
}
