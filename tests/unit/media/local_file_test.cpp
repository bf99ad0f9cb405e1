// file: URLs stay inside their directory (field case B82).
#include "media/local_file.h"

#include <atomic>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"
#include "vitrove/fetch.h"

namespace vitrove::test {
namespace {

namespace fs = std::filesystem;

class FileUrls : public testing::Test {
 protected:
  FileUrls() {
    std::string name = (fs::temp_directory_path() / "vitrove-files-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    base_ = fs::canonical(name);
    root_ = base_ / "allowed";
    fs::create_directories(root_ / "sub");
    write(root_ / "a.txt", "inside");
    write(root_ / "sub" / "b c.txt", "deeper");
    write(base_ / "secret.txt", "secret");
  }
  ~FileUrls() override { fs::remove_all(base_); }

  static void write(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::string url(std::string_view below) const {
    return "file://" + root_.string() + "/" + std::string(below);
  }
  std::string read(const std::string& url, std::uint64_t limit = 1000) const {
    return to_text(LocalFiles(root_).read(url, limit));
  }
  Failure failure(const std::string& url, std::uint64_t limit = 1000) const {
    return failure_of([&] { read(url, limit); });
  }

  fs::path base_;
  fs::path root_;
};

TEST_F(FileUrls, AreOffByDefault) {
  const MediaFetcher fetcher{FetchPolicy{}};
  const Failure failure = failure_of([&] { fetcher.fetch(url("a.txt")); });
  EXPECT_EQ(failure.status(), 403);
  expect_safe_for_clients(failure.message);
}

TEST_F(FileUrls, ReadFilesBelowTheDirectory) {
  FetchPolicy policy;
  policy.allowed_local_media_path = root_;
  EXPECT_EQ(to_text(MediaFetcher(policy).fetch(url("a.txt"))), "inside");
  EXPECT_EQ(read("FILE://LOCALHOST" + root_.string() + "/a.txt"), "inside");
  EXPECT_EQ(read("file:" + root_.string() + "/a.txt"), "inside");
  EXPECT_EQ(read(url("sub/b%20c.txt")), "deeper");
  EXPECT_EQ(read(url("./sub//../%61.txt")), "inside");
}

TEST_F(FileUrls, FollowLinksThatStayInside) {
  fs::create_symlink("a.txt", root_ / "link.txt");
  fs::create_directory_symlink(root_, base_ / "alias");
  EXPECT_EQ(read(url("link.txt")), "inside");
  // The directory may be named through a link, and URLs may use either spelling.
  const LocalFiles files(base_ / "alias");
  EXPECT_EQ(to_text(files.read("file://" + (base_ / "alias/a.txt").string(), 1000)), "inside");
  EXPECT_EQ(to_text(files.read(url("a.txt"), 1000)), "inside");
}

TEST_F(FileUrls, MissingAndForbiddenFilesGetTheSameAnswer) {
  fs::create_symlink(base_ / "secret.txt", root_ / "out.txt");
  fs::create_symlink("../secret.txt", root_ / "out2.txt");
  fs::create_directory_symlink(base_, root_ / "up");
  ASSERT_EQ(::mkfifo((root_ / "fifo").c_str(), 0600), 0);
  std::vector<std::string> urls{url("missing.txt"),
                                url("sub"),
                                url(""),
                                url("sub/"),
                                url("out.txt"),
                                url("out2.txt"),
                                url("up/secret.txt"),
                                url("fifo"),
                                url("../secret.txt"),
                                url("sub/../../secret.txt"),
                                url("%2e%2e/secret.txt"),
                                url("..%2fsecret.txt"),
                                url("a.txt/x"),
                                "file://" + base_.string() + "/secret.txt",
                                "file://" + root_.string() + "x/a.txt",
                                "file:///etc/passwd",
                                "file:///dev/zero",
                                "file:///proc/self/environ",
                                "file:///",
                                "file://localhost/etc/passwd"};
  const std::string expected = failure(url("missing.txt")).message;
  for (const std::string& text : urls) {
    SCOPED_TRACE(text);
    const Failure failed = failure(text);
    EXPECT_EQ(failed.status(), 404);
    EXPECT_EQ(failed.message, expected);
    expect_safe_for_clients(failed.message);
  }
}

// Root reads everything, so as somebody else.
class OtherUser {
 public:
  OtherUser() { EXPECT_EQ(::seteuid(::geteuid() == 0 ? 65534 : ::geteuid()), 0); }
  ~OtherUser() { EXPECT_EQ(::seteuid(::getuid()), 0); }
};

TEST_F(FileUrls, UnreadableFilesGetThatAnswerToo) {
  fs::permissions(base_, fs::perms(0755));
  fs::permissions(root_ / "a.txt", fs::perms::none);
  const LocalFiles files(root_);
  const OtherUser other;
  const Failure failed = failure_of([&] { files.read(url("a.txt"), 1000); });
  EXPECT_NE(failed.detail.find("Permission denied"), std::string::npos) << failed.detail;
  EXPECT_EQ(failed.status(), 404);
  EXPECT_EQ(failed.message, failure(url("missing.txt")).message);
}

TEST_F(FileUrls, DevicesAndPseudoFilesAreNoMedia) {
  const LocalFiles files("/");
  for (const char* text : {"file:///dev/zero", "file:///dev/null", "file:///proc/self/fd/0"}) {
    EXPECT_EQ(failure_of([&] { files.read(text, 1000); }).status(), 404) << text;
  }
}

TEST_F(FileUrls, MalformedOnesAreRefused) {
  for (const std::string& text :
       {std::string("file:"), std::string("file://"), std::string("file:a.txt"), url("a.txt#x.jpg"),
        url("a.txt?x"), url("a%00.txt"), url("a%zz.txt"), url("sub\\a.txt")}) {
    const Failure failed = failure(text);
    EXPECT_EQ(failed.status(), 400) << text;
    expect_safe_for_clients(failed.message);
  }
  EXPECT_EQ(failure("file://otherhost" + root_.string() + "/a.txt").status(), 403);
}

TEST_F(FileUrls, SizesAreLimitedAndEmptyFilesRefused) {
  write(root_ / "big", std::string(100, 'x'));
  write(root_ / "empty", "");
  EXPECT_EQ(read(url("big"), 100).size(), 100u);
  EXPECT_EQ(failure(url("big"), 99).status(), 413);
  EXPECT_EQ(failure(url("empty")).status(), 400);
}

TEST_F(FileUrls, ADirectoryThatIsNoneIsRefusedAtTheStart) {
  for (const fs::path& path : {root_ / "missing", root_ / "a.txt"}) {
    FetchPolicy policy;
    policy.allowed_local_media_path = path;
    EXPECT_EQ(failure_of([&] { MediaFetcher fetcher(policy); }).status(), 400);
  }
}

// The fallback for kernels without openat2: no links at all.
TEST_F(FileUrls, AreFoundWhileOtherFilesAreRenamed) {
  std::atomic<bool> done{false};
  std::thread renamer([&] {
    write(base_ / "one", "");
    while (!done) {
      fs::rename(base_ / "one", base_ / "two");
      fs::rename(base_ / "two", base_ / "one");
    }
  });
  int missed = 0;
  for (int i = 0; i < 2000; ++i) {
    try {
      missed += read(url("sub/../a.txt")) != "inside";
    } catch (const Error&) {
      ++missed;
    }
  }
  done = true;
  renamer.join();
  EXPECT_EQ(missed, 0);
}

TEST_F(FileUrls, WalkingOpensPlainPathsOnly) {
  fs::create_symlink("a.txt", root_ / "link.txt");
  fs::create_directory_symlink("sub", root_ / "sublink");
  const UniqueFd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(open_beneath_by_walking(root.get(), "a.txt"));
  EXPECT_TRUE(open_beneath_by_walking(root.get(), "sub/b c.txt"));
  for (const char* path : {"link.txt", "sublink/b c.txt", "../secret.txt", "sub/../a.txt", "",
                           "sub//b c.txt", "/etc/passwd", "missing", "a.txt/x"}) {
    EXPECT_FALSE(open_beneath_by_walking(root.get(), path)) << path;
  }
  EXPECT_TRUE(open_beneath(root.get(), "link.txt"));
}

}  // namespace
}  // namespace vitrove::test
