#include "encoders/onnx/execution_provider.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <onnxruntime_c_api.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

using Failure = std::optional<std::string>;

// The full name of an offered provider.
std::string find_offered(const OrtLibrary& library, const std::string& provider) {
  std::string offered;
  for (const std::string& full : library.providers()) {
    const std::string name = short_provider_name(full);
    if (name == provider) return full;
    offered += (offered.empty() ? "" : ", ") + name;
  }
  throw Error(ErrorCode::invalid_argument,
              "execution provider '" + provider +
                  "' is not in this ONNX Runtime, which offers: " + offered);
}

// CUDA and TensorRT have options of their own; the generic call does not know them.
Failure append_cuda(const OrtLibrary& library, OrtSessionOptions* options) {
  const OrtApi& api = library.api();
  OrtCUDAProviderOptionsV2* raw = nullptr;
  if (auto failure = library.failure(api.CreateCUDAProviderOptions(&raw))) return failure;
  const OrtHandle<OrtCUDAProviderOptionsV2> cuda(raw, api.ReleaseCUDAProviderOptions);
  return library.failure(api.SessionOptionsAppendExecutionProvider_CUDA_V2(options, raw));
}

Failure append_tensorrt(const OrtLibrary& library, OrtSessionOptions* options) {
  const OrtApi& api = library.api();
  OrtTensorRTProviderOptionsV2* raw = nullptr;
  if (auto failure = library.failure(api.CreateTensorRTProviderOptions(&raw))) return failure;
  const OrtHandle<OrtTensorRTProviderOptionsV2> trt(raw, api.ReleaseTensorRTProviderOptions);
  return library.failure(api.SessionOptionsAppendExecutionProvider_TensorRT_V2(options, raw));
}

// The generic call knows most providers by a name of its own, spelled as they like it.
std::string_view generic_name(std::string_view provider) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> names{
      {{"xnnpack", "XNNPACK"},
       {"openvino", "OpenVINO"},
       {"qnn", "QNN"},
       {"coreml", "CoreML"},
       {"azure", "AZURE"},
       {"snpe", "SNPE"},
       {"webgpu", "WebGPU"},
       {"vitisai", "VitisAI"},
       {"migraphx", "MIGraphX"}}};
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const auto& entry) { return entry.first == provider; });
  return found == names.end() ? std::string_view() : found->second;
}

Failure append_generic(const OrtLibrary& library, OrtSessionOptions* options,
                       const std::string& provider, const std::string& full_name) {
  const std::string_view spelled = generic_name(provider);
  const std::string name = spelled.empty() ? full_name : std::string(spelled);
  return library.failure(library.api().SessionOptionsAppendExecutionProvider(options, name.c_str(),
                                                                             nullptr, nullptr, 0));
}

Failure append(const OrtLibrary& library, OrtSessionOptions* options, const std::string& provider,
               const std::string& full_name) {
  if (provider == "cuda") return append_cuda(library, options);
  if (provider == "tensorrt") return append_tensorrt(library, options);
  return append_generic(library, options, provider, full_name);
}

}  // namespace

void append_execution_provider(const OrtLibrary& library, OrtSessionOptions* options,
                               const std::string& provider) {
  const std::string full_name = find_offered(library, provider);
  if (provider == "cpu") return;  // is always the last resort, without being asked for
  if (auto failure = append(library, options, provider, full_name)) {
    throw Error(ErrorCode::invalid_argument,
                "execution provider '" + provider + "' cannot be used here", std::move(*failure));
  }
  // TensorRT leaves to CUDA what it cannot do; without this, such nodes would run on the CPU.
  if (provider == "tensorrt") append_cuda(library, options);
}

}  // namespace vitrove
