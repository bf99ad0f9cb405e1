#include "encoders/onnx/ort_library.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include "sample.h"
#include "support.h"

namespace vitrove::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A library of another version, played by two functions; `newest` is what it knows, whatever it
// says.
struct OldLibrary {
  static inline std::string version;
  static inline std::uint32_t newest = 0;
  static inline std::uint32_t first_asked = 0;

  static const OrtApi* ORT_API_CALL get_api(std::uint32_t wanted) noexcept {
    static const OrtApi api{};
    if (first_asked == 0) first_asked = wanted;
    return wanted <= newest ? &api : nullptr;
  }
  static const char* ORT_API_CALL get_version() noexcept { return version.c_str(); }

  static NegotiatedApi negotiate(std::string says, std::uint32_t knows) {
    version = std::move(says);
    newest = knows;
    first_asked = 0;
    const OrtApiBase base{get_api, get_version};
    return negotiate_ort_api(base);
  }
};

TEST(OrtLibrary, AnOlderLibraryIsAskedForTheApiItHas) {
  EXPECT_EQ(OldLibrary::negotiate("1.21.3", 21).version, 21U);
  EXPECT_EQ(OldLibrary::first_asked, 21U) << "asking for more would make it complain aloud";
  EXPECT_EQ(OldLibrary::negotiate("1.16.0", 16).version, 16U);
}

TEST(OrtLibrary, ANewerLibraryIsAskedForTheApiOfOurHeaders) {
  EXPECT_EQ(OldLibrary::negotiate("1.999.0", 999).version, unsigned{ORT_API_VERSION});
  EXPECT_EQ(OldLibrary::negotiate("2.0.0", 999).version, unsigned{ORT_API_VERSION});
}

TEST(OrtLibrary, AVersionThatTellsNothingIsFollowedDownwards) {
  EXPECT_EQ(OldLibrary::negotiate("nightly", 18).version, 18U);
}

TEST(OrtLibrary, ALibraryThatIsTooOldIsRefusedByName) {
  const Failure failure = failure_of([] { OldLibrary::negotiate("1.12.1", 12); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_EQ(failure.message, "ONNX Runtime 1.12.1 is too old: 1.16 or newer is needed");
}

TEST(OrtLibrary, IsSearchedBesideTheExecutableAndThenInTheSystem) {
  const auto candidates = ort_library_candidates("/src/build/release/tests/unit_encoders");
  EXPECT_THAT(candidates, Contains("/src/build/deps/onnxruntime/lib/libonnxruntime.so.1"));
  EXPECT_THAT(ort_library_candidates("/src/build/release/vitrove"),
              Contains("/src/build/deps/onnxruntime/lib/libonnxruntime.so.1"));
  EXPECT_THAT(ort_library_candidates("/usr/bin/vitrove"), Contains("/usr/lib/libonnxruntime.so.1"));
  ASSERT_GE(candidates.size(), 2U);
  EXPECT_EQ(candidates[candidates.size() - 2], "libonnxruntime.so.1");
  EXPECT_EQ(ort_library_candidates("").front(), "libonnxruntime.so.1");
}

TEST(OrtLibrary, ProvidersHaveShortNames) {
  EXPECT_EQ(short_provider_name("CPUExecutionProvider"), "cpu");
  EXPECT_EQ(short_provider_name("TensorrtExecutionProvider"), "tensorrt");
  EXPECT_EQ(short_provider_name("Odd"), "odd");
}

TEST(OrtLibrary, OpensAndOffersTheCpu) {
  const OrtLibrary library(onnxruntime_library());
  EXPECT_THAT(library.version(), HasSubstr("1."));
  EXPECT_GE(library.api_version(), oldest_ort_api);
  EXPECT_THAT(library.providers(), Contains("CPUExecutionProvider"));
}

TEST(OrtLibrary, APathThatIsGivenIsTheOnlyOneTried) {
  const TemporaryDirectory directory;
  const auto missing = directory.path() / "libonnxruntime.so.1";
  const Failure failure = failure_of([&] { OrtLibrary library(missing); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_THAT(failure.message, HasSubstr("cannot be opened"));
  EXPECT_TRUE(is_one_line(failure.message));
  EXPECT_THAT(failure.message, Not(HasSubstr(directory.path().string())));
  EXPECT_THAT(failure.detail, HasSubstr(missing.string()));
}

TEST(OrtLibrary, AnotherLibraryIsToldApart) {
  const Failure failure = failure_of([] { OrtLibrary library("libm.so.6"); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_EQ(failure.message, "the library opened as ONNX Runtime has no OrtGetApiBase");
}

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(OrtLibrary, TheEnvironmentNamesTheLibraryUnlessTheConfigurationDoes) {
  const EnvironmentVariable missing("VITROVE_ONNXRUNTIME_LIBRARY", "/no/such/library.so");
  const Failure failure = failure_of([] { OrtLibrary library(""); });
  EXPECT_EQ(failure.code, ErrorCode::unavailable);
  EXPECT_THAT(failure.message, HasSubstr("VITROVE_ONNXRUNTIME_LIBRARY"));
  EXPECT_NO_THROW(OrtLibrary library(onnxruntime_library()));

  const EnvironmentVariable named("VITROVE_ONNXRUNTIME_LIBRARY", onnxruntime_library());
  EXPECT_NO_THROW(OrtLibrary library(""));
}

// The library decides once a process, so this is a process of its own.
TEST(OrtLibraryDeathTest, LeavesNothingInTheHomeDirectory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryDirectory home;
  EXPECT_EXIT(
      {
        ::unsetenv("ORT_DISABLE_TELEMETRY");  // NOLINT(concurrency-mt-unsafe)
        for (const char* place : {"HOME", "XDG_CACHE_HOME", "TMPDIR"}) {
          ::setenv(place, home.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
        }
        { const OrtLibrary library(onnxruntime_library()); }
        std::_Exit(std::filesystem::is_empty(home.path()) ? 42 : 1);
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace vitrove::test
