#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what() + std::string(" | ") + error.detail();
  }
  return "no error";
}

TEST(StoreUrl, ReadsEveryPart) {
  const StoreUrl url = StoreUrl::parse("redis://user:secret@host:6379/0?timeout=2s&prefix=a%26b");
  EXPECT_EQ(url.scheme, "redis");
  EXPECT_EQ(url.user, "user");
  EXPECT_EQ(url.password, "secret");
  EXPECT_EQ(url.host, "host");
  EXPECT_EQ(url.port, 6379);
  EXPECT_EQ(url.path, "/0");
  EXPECT_EQ(url.options,
            (std::map<std::string, std::string>{{"prefix", "a&b"}, {"timeout", "2s"}}));
}

TEST(StoreUrl, ReadsTheFormsOfTheDesign) {
  const StoreUrl memory = StoreUrl::parse("memory:?capacity=1GiB");
  EXPECT_EQ(memory.scheme, "memory");
  EXPECT_EQ(memory.host + memory.path, "");
  EXPECT_EQ(memory.options.at("capacity"), "1GiB");

  const StoreUrl file = StoreUrl::parse("file:///var/lib/vitrove?capacity=50GiB&fsync=false");
  EXPECT_EQ(file.path, "/var/lib/vitrove");
  EXPECT_EQ(file.host, "");
  EXPECT_EQ(file.options.size(), 2u);

  EXPECT_EQ(StoreUrl::parse("redis+cluster://a:1,b:2").host, "a:1,b:2");
  EXPECT_EQ(StoreUrl::parse("mooncake://master:50051?protocol=tcp").port, 50051);
  EXPECT_EQ(StoreUrl::parse("FILE:///x").scheme, "file");
  EXPECT_EQ(StoreUrl::parse("redis://[::1]:6379").host, "::1");
  EXPECT_EQ(StoreUrl::parse("redis://[::1]:6379").port, 6379);
  EXPECT_EQ(StoreUrl::parse("memory:").scheme, "memory");
}

TEST(StoreUrl, DecodesPercentEncodingInEveryPartButTheScheme) {
  const StoreUrl url =
      StoreUrl::parse("redis://us%40er:p%40ss%3Aw%2Frd%231@h%2Dost/a%20b?na%3Dme=va%26lue");
  EXPECT_EQ(url.user, "us@er");
  EXPECT_EQ(url.password, "p@ss:w/rd#1");
  EXPECT_EQ(url.host, "h-ost");
  EXPECT_EQ(url.path, "/a b");
  EXPECT_EQ(url.options.at("na=me"), "va&lue");
}

TEST(StoreUrl, KeepsAnAtSignAndAColonInsideAPassword) {
  const StoreUrl url = StoreUrl::parse("redis://:p@ss:word@host:1");
  EXPECT_EQ(url.user, "");
  EXPECT_EQ(url.password, "p@ss:word");
  EXPECT_EQ(url.host, "host");
}

TEST(StoreUrl, RefusesWhatIsMalformed) {
  for (const std::string text : {"",
                                 "plain",
                                 ":",
                                 "://x",
                                 "1x://h",
                                 "a b://h",
                                 "redis://host:port",
                                 "redis://host:0",
                                 "redis://host:65536",
                                 "redis://host:1x",
                                 "redis://:6379",
                                 "redis://[::1",
                                 "redis://[::1]x",
                                 "file:///a%2",
                                 "file:///a%zz",
                                 "file:///a%00b",
                                 "file:///x?=1",
                                 "file:///x?fsync",
                                 "file:///x?a=1&a=2",
                                 "file:///x?a=1&&b=2",
                                 "file:///x#y"}) {
    EXPECT_THAT(error_of([&] { StoreUrl::parse(text); }), HasSubstr("store URL")) << text;
  }
}

TEST(StoreUrl, WritesItselfSoThatItReadsBackTheSame) {
  for (const std::string text :
       {"redis://us%40er:p%40ss%3Aw%2Frd%231@host:7/a%20b", "memory:", "file:///var/lib/x",
        "redis://:pw@[::1]:6379/0", "redis+cluster://a:1,b:2", "x://host"}) {
    EXPECT_EQ(StoreUrl::parse(text).text(), text);
  }
}

TEST(RedactUrl, HidesPasswordsHoweverTheyAreWritten) {
  EXPECT_EQ(redact_url("redis://user:secret@host:6379/0?timeout=2s"),
            "redis://user:***@host:6379/0?timeout=2s");
  EXPECT_EQ(redact_url("redis://:secret@host"), "redis://:***@host");
  EXPECT_EQ(redact_url("x://host?password=secret&n=1&auth_token=secret"),
            "x://host?password=***&n=1&auth_token=***");
  for (const std::string text :
       {"redis://u:se/cret@host:1", "redis://u:se?cret@host:1", "redis://u:se#cret@host:1",
        "redis://u:se@cret@host:1", "redis://u:1/se:cret@host:1", "redis://u:se%zzcret@host"}) {
    EXPECT_THAT(redact_url(text), Not(HasSubstr("cret"))) << text;
    EXPECT_THAT(redact_url(text), Not(HasSubstr("se"))) << text;
    EXPECT_THAT(error_of([&] { StoreUrl::parse(text); }), Not(HasSubstr("cret"))) << text;
  }
}

TEST(RedactUrl, LeavesTheRestAlone) {
  for (const std::string text : {"", "file:///var/lib/x?capacity=1GiB", "memory:", "redis://user@h",
                                 "redis://host:6379/0", "no url at all"}) {
    EXPECT_EQ(redact_url(text), text);
  }
}

TEST(StoreOptions, ReadsWhatIsGivenAndFallsBackToDefaults) {
  StoreOptions options({{"size", "2KiB"},
                        {"wait", "5ms"},
                        {"n", "-3"},
                        {"on", "Yes"},
                        {"off", "0"},
                        {"word", "x y"}});
  EXPECT_EQ(options.bytes("size", 1), 2048u);
  EXPECT_EQ(options.duration("wait", {}), std::chrono::milliseconds(5));
  EXPECT_EQ(options.integer("n", 0), -3);
  EXPECT_TRUE(options.flag("on", false));
  EXPECT_FALSE(options.flag("off", true));
  EXPECT_EQ(options.text("word", ""), "x y");
  EXPECT_EQ(options.bytes("other", 7), 7u);
  EXPECT_EQ(options.text("another", "z"), "z");
  EXPECT_NO_THROW(options.reject_unknown());
}

TEST(StoreOptions, NamesTheOptionWhoseValueIsBad) {
  StoreOptions options({{"size", "-1"}, {"wait", "soon"}, {"n", "1x"}, {"on", "maybe"}});
  EXPECT_THAT(error_of([&] { options.bytes("size", 0); }), HasSubstr("'size'"));
  EXPECT_THAT(error_of([&] { options.duration("wait", {}); }), HasSubstr("'wait'"));
  EXPECT_THAT(error_of([&] { options.integer("n", 0); }), HasSubstr("'n'"));
  EXPECT_THAT(error_of([&] { options.flag("on", false); }), HasSubstr("'on'"));
}

TEST(StoreOptions, RefusesWhatNobodyAskedForAndListsWhatIsKnown) {
  StoreOptions options(std::map<std::string, std::string>{{"capcity", "1GiB"}});
  options.bytes("capacity", 0);
  options.flag("fsync", false);
  const std::string error = error_of([&] { options.reject_unknown(); });
  EXPECT_THAT(error, HasSubstr("'capcity'"));
  EXPECT_THAT(error, HasSubstr("capacity, fsync"));
}

}  // namespace
}  // namespace vitrove
