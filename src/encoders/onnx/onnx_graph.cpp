#include "encoders/onnx/onnx_graph.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <onnxruntime_c_api.h>
#include <onnxruntime_session_options_config_keys.h>

#include "encoders/onnx/execution_provider.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

ElementType element_type(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
      return ElementType::float32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
      return ElementType::float16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
      return ElementType::bfloat16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
      return ElementType::int32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
      return ElementType::int64;
    default:
      return ElementType::other;
  }
}

ONNXTensorElementDataType onnx_type(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case ElementType::float16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case ElementType::bfloat16:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
    case ElementType::int32:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case ElementType::int64:
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case ElementType::other:
      break;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::int64:
      return 8;
    case ElementType::other:
      break;
  }
  return 0;
}

OrtHandle<OrtSessionOptions> session_options(const OrtLibrary& library, const std::string& provider,
                                             int threads) {
  const OrtApi& api = library.api();
  const char* what = "ONNX Runtime refuses a session option";
  OrtSessionOptions* raw = nullptr;
  library.check(api.CreateSessionOptions(&raw), what);
  OrtHandle<OrtSessionOptions> options(raw, api.ReleaseSessionOptions);

  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  library.check(api.SetIntraOpNumThreads(raw, threads > 0 ? threads : cores), what);
  library.check(api.SetInterOpNumThreads(raw, 1), what);
  library.check(api.SetSessionExecutionMode(raw, ORT_SEQUENTIAL), what);
  library.check(api.AddSessionConfigEntry(raw, kOrtSessionOptionsConfigAllowIntraOpSpinning, "0"),
                what);
  library.check(api.DisableMemPattern(raw), what);
  constexpr std::uint32_t deterministic_since = 17;
  if (library.api_version() >= deterministic_since) {
    library.check(api.SetDeterministicCompute(raw, true), what);
  }
  append_execution_provider(library, raw, provider);
  return options;
}

OrtHandle<OrtSession> load_session(const OrtLibrary& library, const std::filesystem::path& model,
                                   const std::string& provider, int threads) {
  const auto options = session_options(library, provider, threads);
  OrtSession* session = nullptr;
  OrtStatus* status =
      library.api().CreateSession(library.env(), model.c_str(), options.get(), &session);
  if (auto failure = library.failure(status)) {
    throw Error(ErrorCode::invalid_argument, "ONNX Runtime cannot load model.onnx",
                std::move(*failure));
  }
  return {session, library.api().ReleaseSession};
}

std::vector<std::int64_t> shape_of(const OrtLibrary& library,
                                   const OrtTensorTypeAndShapeInfo* info) {
  const char* what = "ONNX Runtime does not tell a shape";
  std::size_t rank = 0;
  library.check(library.api().GetDimensionsCount(info, &rank), what);
  std::vector<std::int64_t> shape(rank);
  library.check(library.api().GetDimensions(info, shape.data(), rank), what);
  return shape;
}

ElementType type_of(const OrtLibrary& library, const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  library.check(library.api().GetTensorElementType(info, &type),
                "ONNX Runtime does not tell a type");
  return element_type(type);
}

using CountFunction = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t*);
using NameFunction = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t, OrtAllocator*,
                                               char**);
using TypeFunction = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t, OrtTypeInfo**);

// Inputs and outputs are told by three functions each, alike in everything but their names.
struct Side {
  CountFunction count;
  NameFunction name;
  TypeFunction type;
};

std::string read_name(const OrtLibrary& library, const OrtSession* session, const Side& side,
                      std::size_t index) {
  const char* what = "ONNX Runtime does not tell a name";
  OrtAllocator* allocator = nullptr;
  library.check(library.api().GetAllocatorWithDefaultOptions(&allocator), what);
  char* name = nullptr;
  library.check(side.name(session, index, allocator, &name), what);
  std::string copy = name;
  library.check(library.api().AllocatorFree(allocator, name), what);
  return copy;
}

GraphTensor read_tensor(const OrtLibrary& library, const OrtSession* session, const Side& side,
                        std::size_t index) {
  const char* what = "ONNX Runtime does not tell a type";
  GraphTensor tensor;
  tensor.name = read_name(library, session, side, index);
  OrtTypeInfo* raw = nullptr;
  library.check(side.type(session, index, &raw), what);
  const OrtHandle<OrtTypeInfo> type(raw, library.api().ReleaseTypeInfo);
  const OrtTensorTypeAndShapeInfo* info = nullptr;
  library.check(library.api().CastTypeInfoToTensorInfo(raw, &info), what);
  if (info == nullptr) return tensor;  // a sequence or map: never one that we can use
  tensor.type = type_of(library, info);
  tensor.shape = shape_of(library, info);
  return tensor;
}

std::vector<GraphTensor> read_tensors(const OrtLibrary& library, const OrtSession* session,
                                      const Side& side) {
  std::size_t count = 0;
  library.check(side.count(session, &count), "ONNX Runtime does not tell a graph's inputs");
  std::vector<GraphTensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back(read_tensor(library, session, side, i));
  }
  return tensors;
}

const GraphTensor* find_named(const std::vector<GraphTensor>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const GraphTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

std::string_view to_string(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return "float32";
    case ElementType::float16:
      return "float16";
    case ElementType::bfloat16:
      return "bfloat16";
    case ElementType::int32:
      return "int32";
    case ElementType::int64:
      return "int64";
    case ElementType::other:
      break;
  }
  return "another type";
}

std::string describe_shape(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += size < 0 ? "?" : std::to_string(size);
  }
  return text + "]";
}

OnnxGraph::OnnxGraph(std::shared_ptr<const OrtLibrary> library, const std::filesystem::path& model,
                     const std::string& provider, int threads)
    : library_(std::move(library)), session_(load_session(*library_, model, provider, threads)) {
  const OrtApi& api = library_->api();
  OrtMemoryInfo* memory = nullptr;
  library_->check(api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory),
                  "ONNX Runtime does not describe host memory");
  memory_ = OrtHandle<OrtMemoryInfo>(memory, api.ReleaseMemoryInfo);
  inputs_ = read_tensors(
      *library_, session_.get(),
      {api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo});
  outputs_ = read_tensors(
      *library_, session_.get(),
      {api.SessionGetOutputCount, api.SessionGetOutputName, api.SessionGetOutputTypeInfo});
}

const GraphTensor* OnnxGraph::find_input(std::string_view name) const {
  return find_named(inputs_, name);
}

const GraphTensor* OnnxGraph::find_output(std::string_view name) const {
  return find_named(outputs_, name);
}

OrtHandle<OrtValue> OnnxGraph::make_value(const InputTensor& input) const {
  const OrtApi& api = library_->api();
  OrtValue* value = nullptr;
  // The interface is not const-correct; a graph's inputs are only read.
  auto* data = const_cast<std::byte*>(input.bytes.data());
  library_->check(api.CreateTensorWithDataAsOrtValue(memory_.get(), data, input.bytes.size(),
                                                     input.shape.data(), input.shape.size(),
                                                     onnx_type(input.type), &value),
                  "ONNX Runtime refuses an input");
  return {value, api.ReleaseValue};
}

OutputTensor OnnxGraph::open_output(OrtHandle<OrtValue> value) const {
  const OrtApi& api = library_->api();
  const char* what = "ONNX Runtime does not show an output";
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  library_->check(api.GetTensorTypeAndShape(value.get(), &raw), what);
  const OrtHandle<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);

  OutputTensor output;
  output.type = type_of(*library_, raw);
  output.shape = shape_of(*library_, raw);
  std::size_t elements = 0;
  library_->check(api.GetTensorShapeElementCount(raw, &elements), what);
  void* data = nullptr;
  library_->check(api.GetTensorMutableData(value.get(), &data), what);
  output.bytes = {static_cast<const std::byte*>(data), elements * bytes_of(output.type)};
  output.value = std::move(value);
  return output;
}

OutputTensor OnnxGraph::run(std::span<const InputTensor> inputs, const std::string& output) const {
  const OrtApi& api = library_->api();
  std::vector<OrtHandle<OrtValue>> owned;
  std::vector<const OrtValue*> values;
  std::vector<const char*> names;
  for (const InputTensor& input : inputs) {
    owned.push_back(make_value(input));
    values.push_back(owned.back().get());
    names.push_back(input.name.c_str());
  }
  const char* wanted = output.c_str();
  OrtValue* result = nullptr;
  library_->check(api.Run(session_.get(), nullptr, names.data(), values.data(), values.size(),
                          &wanted, 1, &result),
                  "the encoder's graph failed");
  return open_output(OrtHandle<OrtValue>(result, api.ReleaseValue));
}

}  // namespace vitrove
