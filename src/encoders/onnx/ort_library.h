// ONNX Runtime, opened at run time, so that a build of Vitrove works with whatever library the
// host has (a CPU build, a CUDA build, a distribution's package) and runs without any.
//
// Searched in this order: the path given by the caller, the environment variable
// VITROVE_ONNXRUNTIME_LIBRARY, directories relative to the executable, the system's library path.
// A path that was given explicitly is the only one tried: silently taking another library would
// hide the mistake.
//
// It is forbidden to report its use to its maker, by ORT_DISABLE_TELEMETRY=1 in the environment
// unless that is set. A host with threads that call setenv() or getenv() sets it by itself, before.
//
// The C API only ever grows at its end, so a library older than our headers is asked for the API it
// has, down to `oldest_ort_api`. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct OrtApi;
struct OrtApiBase;
struct OrtEnv;
struct OrtStatus;

namespace vitrove {

// ONNX Runtime 1.16. Everything used without asking for a newer one is in it.
constexpr std::uint32_t oldest_ort_api = 16;

// Any ORT object, with the API's function that releases it.
template <typename T>
using OrtHandle = std::unique_ptr<T, void (*)(T*)>;

struct NegotiatedApi {
  const OrtApi* api = nullptr;
  std::uint32_t version = 0;
};

// The newest API that both sides know. Throws Error{unavailable} when the library is too old.
NegotiatedApi negotiate_ort_api(const OrtApiBase& base);

// Where the library may be when nobody said so, nearest first. Bare names are for the system's
// search. `executable` is the running program.
std::vector<std::filesystem::path> ort_library_candidates(const std::filesystem::path& executable);

// "CUDAExecutionProvider" is called "cuda" in options, messages and fingerprints.
std::string short_provider_name(std::string_view full_name);

class OrtLibrary {
 public:
  // `path` empty: search. Throws Error{unavailable} with one clear line.
  explicit OrtLibrary(const std::filesystem::path& path);
  ~OrtLibrary();
  OrtLibrary(const OrtLibrary&) = delete;
  OrtLibrary& operator=(const OrtLibrary&) = delete;

  const OrtApi& api() const { return *negotiated_.api; }
  std::uint32_t api_version() const { return negotiated_.version; }
  OrtEnv* env() const { return env_.get(); }

  // "1.29.0"
  std::string version() const;

  // Execution providers that this build of the library offers, under their full names.
  std::vector<std::string> providers() const;

  // Throws Error{internal} when the status is a failure: `what` for the client, the runtime's words
  // in the detail. Takes ownership.
  void check(OrtStatus* status, const char* what) const;

  // The runtime's words for a failure, or nothing. Takes ownership.
  std::optional<std::string> failure(OrtStatus* status) const;

 private:
  const OrtApiBase* base_ = nullptr;
  NegotiatedApi negotiated_;
  OrtHandle<OrtEnv> env_{nullptr, nullptr};
};

}  // namespace vitrove
