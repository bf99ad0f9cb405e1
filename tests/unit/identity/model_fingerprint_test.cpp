#include "vitrove/model_fingerprint.h"

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vitrove/error.h"

namespace vitrove {
namespace {

namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "vitrove-identity-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  fs::path write(const std::string& name, const std::string& content) const {
    const fs::path file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string random_text(std::size_t length) {
  std::mt19937_64 random(length);
  std::string text(length, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Field cases B26 and B38.
TEST(ModelFingerprint, ChangesWithEachFileAndEachSetting) {
  const FingerprintParts base{{{"model.onnx", sha256("graph")}, {"weights", sha256("weights")}},
                              {{"output", "last_hidden_state"}, {"precision", "fp32"}}};
  std::set<Digest256> fingerprints{model_fingerprint(base)};
  std::size_t expected = 1;
  const auto add = [&](auto change) {
    FingerprintParts parts = base;
    change(parts);
    fingerprints.insert(model_fingerprint(parts));
    ++expected;
  };
  add([](FingerprintParts& p) { p.files["weights"] = sha256("other weights"); });
  add([](FingerprintParts& p) { p.files.erase("weights"); });
  add([](FingerprintParts& p) { p.files["weights2"] = sha256("weights"); });
  add([](FingerprintParts& p) { std::swap(p.files["weights"], p.files["model.onnx"]); });
  add([](FingerprintParts& p) { p.settings["precision"] = "fp16"; });
  add([](FingerprintParts& p) { p.settings["output"] = "pooler_output"; });
  add([](FingerprintParts& p) { p.settings.erase("precision"); });
  add([](FingerprintParts& p) { p.settings["provider"] = "CPU"; });
  add([](FingerprintParts& p) { p.settings.clear(); });
  add([](FingerprintParts& p) { p.files.clear(); });
  EXPECT_EQ(fingerprints.size(), expected);
}

TEST(ModelFingerprint, AFileIsNotASetting) {
  FingerprintParts file;
  file.files["a"] = Digest256{};
  FingerprintParts setting;
  setting.settings["a"] = std::string(32, '\0');
  EXPECT_NE(model_fingerprint(file), model_fingerprint(setting));
}

TEST(DigestFile, IsTheDigestOfTheContentWhateverTheName) {
  const TemporaryDirectory directory;
  constexpr std::size_t piece = 1024 * 1024;
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, piece - 1, piece, piece + 1,
                                   2 * piece, 3 * piece + 12345}) {
    const std::string content = random_text(length);
    const Digest256 expected = sha256(content);
    EXPECT_EQ(digest_file(directory.write("a", content)), expected) << length;
    EXPECT_EQ(digest_file(directory.write("b c.onnx", content)), expected) << length;
  }
}

void expect_unreadable(const fs::path& path) {
  try {
    digest_file(path);
    ADD_FAILURE() << "read " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_EQ(std::string_view(error.what()).find('/'), std::string_view::npos) << error.what();
    EXPECT_NE(error.detail().find(path.string()), std::string::npos);
  }
}

TEST(DigestFile, WhatCannotBeReadIsAnErrorThatKeepsThePathToItself) {
  const TemporaryDirectory directory;
  expect_unreadable(directory.path() / "missing");
  expect_unreadable(directory.path());
  const fs::path pipe = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_unreadable(pipe);  // and does not wait for a writer
}

}  // namespace
}  // namespace vitrove
