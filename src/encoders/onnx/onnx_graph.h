// A loaded ONNX graph: its inputs and outputs by name, and run(). All that Vitrove needs of ONNX
// Runtime, in our own types.
//
// Settings, chosen so that a picture's rows depend on the graph and the library alone: nodes run
// one after the other (no inter-op pool), one intra-op pool of `threads` threads for the life of
// the graph, deterministic kernels where a provider has them. Another number of threads, batch size
// or library version may change the low bits of float32 results.
//
// The pool's threads sleep rather than spin while they wait: decoding and the network share the
// cores, and a spinning pool on a busy machine takes twice as long as a sleeping one. Memory plans
// are not kept, since there would be one for every shape of a batch ever seen.
//
// run() may be called by one thread at a time; everything else is const and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "encoders/onnx/ort_library.h"

struct OrtMemoryInfo;
struct OrtSession;
struct OrtValue;

namespace vitrove {

enum class ElementType : std::uint8_t { float32, float16, bfloat16, int32, int64, other };
std::string_view to_string(ElementType type);

// What the graph declares. A dimension of -1 is open; `shape` is empty when the rank is open.
struct GraphTensor {
  std::string name;
  ElementType type = ElementType::other;
  std::vector<std::int64_t> shape;
};

// "float32 [N,3,224,224]", with "?" for open dimensions, for messages.
std::string describe_shape(std::span<const std::int64_t> shape);

struct InputTensor {
  std::string name;
  ElementType type = ElementType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // valid during run(); of `owned` or of a preprocessed item
  std::vector<std::byte> owned;
};

// The runtime's own buffer: valid as long as this value.
struct OutputTensor {
  OrtHandle<OrtValue> value{nullptr, nullptr};
  ElementType type = ElementType::other;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

class OnnxGraph {
 public:
  // `provider` is a short name, "cpu" or one of the library's. Throws Error{invalid_argument} when
  // the file is no graph that the library can run or the provider is not offered (the message lists
  // those that are).
  OnnxGraph(std::shared_ptr<const OrtLibrary> library, const std::filesystem::path& model,
            const std::string& provider, int threads);

  const std::vector<GraphTensor>& inputs() const { return inputs_; }
  const std::vector<GraphTensor>& outputs() const { return outputs_; }
  const GraphTensor* find_input(std::string_view name) const;
  const GraphTensor* find_output(std::string_view name) const;

  // Throws Error{internal} when the graph fails.
  OutputTensor run(std::span<const InputTensor> inputs, const std::string& output) const;

 private:
  OrtHandle<OrtValue> make_value(const InputTensor& input) const;
  OutputTensor open_output(OrtHandle<OrtValue> value) const;

  std::shared_ptr<const OrtLibrary> library_;
  OrtHandle<OrtMemoryInfo> memory_{nullptr, nullptr};
  OrtHandle<OrtSession> session_{nullptr, nullptr};
  std::vector<GraphTensor> inputs_;
  std::vector<GraphTensor> outputs_;
};

}  // namespace vitrove
