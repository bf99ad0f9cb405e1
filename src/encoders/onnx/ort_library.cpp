#include "encoders/onnx/ort_library.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <dlfcn.h>
#include <onnxruntime_c_api.h>

#include "base/environment.h"
#include "base/log.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr auto library_variable = "VITROVE_ONNXRUNTIME_LIBRARY";
constexpr auto entry_point = "OrtGetApiBase";

// 1.21.3 speaks API 21. Asking for more would make the library complain on standard error.
std::uint32_t api_of_version(std::string_view version) {
  const auto dot = version.find('.');
  if (version.substr(0, dot) != "1" || dot == std::string_view::npos) return ORT_API_VERSION;
  const std::string_view minor = version.substr(dot + 1);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(minor.data(), minor.data() + minor.size(), number);
  return error == std::errc{} ? number : ORT_API_VERSION;
}

spdlog::level::level_enum log_level(OrtLoggingLevel severity) {
  switch (severity) {
    case ORT_LOGGING_LEVEL_WARNING:
      return spdlog::level::warn;
    case ORT_LOGGING_LEVEL_ERROR:
    case ORT_LOGGING_LEVEL_FATAL:
      return spdlog::level::err;
    default:
      return spdlog::level::debug;
  }
}

// Called on the runtime's threads: nothing may be thrown through it.
void ORT_API_CALL forward_log(void*, OrtLoggingLevel severity, const char* category, const char*,
                              const char*, const char* message) {
  try {
    logger()->log(log_level(severity), "ONNX Runtime ({}): {}", category, message);
  } catch (...) {
    // A lost log line must not end the process.
    return;
  }
}

std::filesystem::path running_executable() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

struct Opened {
  void* handle = nullptr;
  std::string failure;
};

// Never unloaded: the runtime keeps threads and thread-local state that outlive its handles.
Opened open_library(const std::filesystem::path& path) {
  Opened opened;
  opened.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened.handle == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps one a thread
    if (const char* text = dlerror()) opened.failure = text;
  }
  return opened;
}

void* open_explicit(const std::filesystem::path& path, const char* given_by) {
  Opened opened = open_library(path);
  if (opened.handle != nullptr) return opened.handle;
  throw Error(ErrorCode::unavailable,
              std::string("the ONNX Runtime library given by ") + given_by + " cannot be opened",
              opened.failure);
}

void* search_library() {
  std::string tried;
  for (const auto& candidate : ort_library_candidates(running_executable())) {
    std::error_code ignored;
    const bool is_bare_name = !candidate.has_parent_path();
    if (!is_bare_name && !std::filesystem::exists(candidate, ignored)) continue;
    Opened opened = open_library(candidate);
    if (opened.handle != nullptr) return opened.handle;
    tried += (tried.empty() ? "" : "; ") + opened.failure;
  }
  throw Error(
      ErrorCode::unavailable,
      std::string("ONNX Runtime not found: install libonnxruntime, run scripts/setup.sh, or "
                  "name the library in ") +
          library_variable,
      tried);
}

// A cache tells nobody outside what it is used for. The library makes files of its reports (a
// device id, a database in the home directory) with its first environment, before its API can be
// told to stop; whoever wants them sets the variable to 0.
void forbid_reports() {
  ::setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // NOLINT(concurrency-mt-unsafe): see the header
}

void* find_library(const std::filesystem::path& path) {
  forbid_reports();
  if (!path.empty()) return open_explicit(path, "the configuration");
  const auto named = environment(library_variable);
  if (named && !named->empty()) return open_explicit(*named, library_variable);
  return search_library();
}

const OrtApiBase* find_api(void* library) {
  void* symbol = dlsym(library, entry_point);
  if (symbol == nullptr) {
    throw Error(ErrorCode::unavailable,
                std::string("the library opened as ONNX Runtime has no ") + entry_point);
  }
  const auto get_base = reinterpret_cast<const OrtApiBase*(ORT_API_CALL*)()>(symbol);
  const OrtApiBase* base = get_base();
  if (base == nullptr) throw Error(ErrorCode::unavailable, "ONNX Runtime offers no API");
  return base;
}

}  // namespace

NegotiatedApi negotiate_ort_api(const OrtApiBase& base) {
  const std::string version = base.GetVersionString();
  const std::uint32_t newest = std::min<std::uint32_t>(ORT_API_VERSION, api_of_version(version));
  for (std::uint32_t wanted = newest; wanted >= oldest_ort_api; --wanted) {
    if (const OrtApi* api = base.GetApi(wanted)) return {api, wanted};
  }
  throw Error(ErrorCode::unavailable, "ONNX Runtime " + version + " is too old: 1." +
                                          std::to_string(oldest_ort_api) + " or newer is needed");
}

std::vector<std::filesystem::path> ort_library_candidates(const std::filesystem::path& executable) {
  std::vector<std::filesystem::path> candidates;
  // The soname first: an unversioned link may be of a development package of another version.
  constexpr std::array names{"libonnxruntime.so.1", "libonnxruntime.so"};
  // build/release/vitrove and build/release/tests/unit_encoders find build/deps; an installed
  // bin/vitrove finds lib and lib/vitrove beside bin.
  constexpr std::array directories{"../deps/onnxruntime/lib", "../../deps/onnxruntime/lib",
                                   "../lib/vitrove", "../lib"};
  if (!executable.empty()) {
    for (const char* directory : directories) {
      for (const char* name : names) {
        candidates.push_back((executable.parent_path() / directory / name).lexically_normal());
      }
    }
  }
  candidates.insert(candidates.end(), names.begin(), names.end());
  return candidates;
}

std::string short_provider_name(std::string_view full_name) {
  constexpr std::string_view suffix = "ExecutionProvider";
  if (full_name.ends_with(suffix)) full_name.remove_suffix(suffix.size());
  std::string name(full_name);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return name;
}

OrtLibrary::OrtLibrary(const std::filesystem::path& path)
    : base_(find_api(find_library(path))), negotiated_(negotiate_ort_api(*base_)) {
  OrtEnv* env = nullptr;
  check(api().CreateEnvWithCustomLogger(forward_log, nullptr, ORT_LOGGING_LEVEL_WARNING, "vitrove",
                                        &env),
        "ONNX Runtime cannot start");
  env_ = OrtHandle<OrtEnv>(env, api().ReleaseEnv);
  // Of builds that do not know the variable. One without reports may say no.
  failure(api().DisableTelemetryEvents(env));
}

OrtLibrary::~OrtLibrary() = default;

std::string OrtLibrary::version() const { return base_->GetVersionString(); }

std::vector<std::string> OrtLibrary::providers() const {
  char** names = nullptr;
  int count = 0;
  check(api().GetAvailableProviders(&names, &count), "ONNX Runtime cannot list its providers");
  std::vector<std::string> providers(names, names + count);
  failure(api().ReleaseAvailableProviders(names, count));
  return providers;
}

std::optional<std::string> OrtLibrary::failure(OrtStatus* status) const {
  if (status == nullptr) return std::nullopt;
  std::string message = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  return message;
}

void OrtLibrary::check(OrtStatus* status, const char* what) const {
  if (auto message = failure(status)) {
    throw Error(ErrorCode::internal, what, std::move(*message));
  }
}

}  // namespace vitrove
