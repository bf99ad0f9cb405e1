// Flags win over the environment, and that over the file, whatever name an option is given by.
#include "cli/option_sources.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/http_client.h"
#include "cli/output.h"
#include "cli/unknown_words.h"
#include "vitrove/error.h"

namespace vitrove::cli {
namespace {

using ::testing::HasSubstr;

class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "vitrove-config-XXXXXX").string();
    ::close(::mkstemp(pattern.data()));
    path_ = pattern;
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::filesystem::remove(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A command with an option of each kind of name.
class OptionSources : public ::testing::Test {
 protected:
  OptionSources() {
    CLI::App* command = app_.add_subcommand("work", "");
    command->add_option("-j,--jobs", jobs_);
    command->add_option("--admin-key,--api-key", key_);
    command->add_option("--pool-size", size_);
    command->add_option("--config", config_);
    command->add_option("-n,--name", names_);
    command->add_option("FILES", files_);
    app_.add_subcommand("rest", "")->add_option("--hours", hours_);
    CLI::App* look = app_.add_subcommand("look", "");
    look->add_option("PLACE", word_);
    look->add_option("--place", place_);
    look->add_option("--config", config_);
    app_.add_subcommand("check", "")->add_option("PLACES,--place", names_);
    CLI::App* inner = app_.add_subcommand("group", "")->add_subcommand("inner", "");
    inner->add_option("--depth", depth_);
    inner->add_option("--config", config_);
  }

  void run_inner(const std::string& text) {
    const ConfigFile file(text);
    parse({"group", "inner", "--config", file.path()});
  }
  void run_with_file(const std::string& text) {
    const ConfigFile file(text);
    run({"--config", file.path()});
  }

  void run(std::vector<std::string> words) {
    words.insert(words.begin(), "work");
    parse(std::move(words));
  }
  void parse(std::vector<std::string> words) {
    refuse_unknown_words(app_, words);
    words = with_option_sources(app_, std::move(words));
    app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  }

  CLI::App app_{"", "vitrove"};
  int jobs_ = 0;
  std::string key_;
  std::string size_;
  std::string config_;
  std::vector<std::string> names_;
  std::vector<std::string> files_;
  int hours_ = 0;
  int depth_ = 0;
  std::string word_;
  std::string place_;
};

TEST_F(OptionSources, AShortFlagWinsOverTheEnvironment) {
  const Variable jobs("VITROVE_JOBS", "8");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-j", "2"}, {"-j2"}, {"--jobs", "2"}, {"--jobs=2"}}) {
    run(words);
    EXPECT_EQ(jobs_, 2) << words.front();
    app_.clear();
  }
  run({});
  EXPECT_EQ(jobs_, 8);
}

TEST_F(OptionSources, AValueThatLooksLikeAnOptionGivesNoOption) {
  const Variable jobs("VITROVE_JOBS", "8");
  const Variable key("VITROVE_API_KEY", "from-environment");
  const ConfigFile file("pool-size = \"9\"\n");
  run({"--name", "-j2", "--name", "--api-key=x", "--name", "--pool-size", "--config", file.path()});
  EXPECT_EQ(names_, (std::vector<std::string>{"-j2", "--api-key=x", "--pool-size"}));
  EXPECT_EQ(jobs_, 8);
  EXPECT_EQ(key_, "from-environment");
  EXPECT_EQ(size_, "9");
}

TEST_F(OptionSources, AValueThatLooksLikeAConfigurationIsNone) {
  const ConfigFile file("jobs = 5\n");
  run({"--name", "--config=/nonexistent", "--config", file.path()});
  EXPECT_EQ(jobs_, 5);
}

TEST_F(OptionSources, TwoDashesEndTheOptionsWhereverTheyStand) {
  const Variable jobs("VITROVE_JOBS", "8");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"a", "--", "-j2", "--api-key=x", "[b]"},
        {"--", "a", "-j2", "--api-key=x", "[b]"}}) {
    run(words);
    EXPECT_EQ(files_, (std::vector<std::string>{"a", "-j2", "--api-key=x", "[b]"}));
    EXPECT_EQ(jobs_, 8);
    EXPECT_EQ(key_, "");
    app_.clear();
  }
  run({"a", "--", "--", "b"});
  EXPECT_EQ(files_, (std::vector<std::string>{"a", "--", "b"}));
}

TEST_F(OptionSources, AfterTwoDashesEveryWordIsPlainWhateverTheParserMakesOfIt) {
  run({"a", "--", "++", "rest", "-j2", "[b]", "\x01", "c"});
  EXPECT_EQ(files_, (std::vector<std::string>{"a", "++", "rest", "-j2", "[b]", "\x01", "c"}));
}

TEST_F(OptionSources, TwoPlusesAreAPlainWord) {
  run({"a", "++", "--name", "++", "b"});
  EXPECT_EQ(files_, (std::vector<std::string>{"a", "++"}));
  EXPECT_EQ(names_, (std::vector<std::string>{"++", "b"}));
}

TEST_F(OptionSources, WhatCannotBeginANameIsAPlainWord) {
  const std::vector<std::string> words{"- a.png", "-!x", "-", "---x", "-- x", "--!x", "-\n"};
  for (const std::string& word : words) {
    run({word});
    EXPECT_EQ(files_, std::vector<std::string>{word});
    app_.clear();
  }
  EXPECT_THROW(run({"-q"}), Error);
  EXPECT_THROW(run({"--q"}), Error);
}

TEST_F(OptionSources, AMessageNamesTheWordsAsTheyWereGiven) {
  try {
    parse({"rest", "++", "[b]"});
    FAIL() << "two words too many";
  } catch (const CLI::ParseError& error) {
    EXPECT_NE(std::string(error.what()).find('\x01'), std::string::npos);
    const std::string says = as_given(error.what());
    EXPECT_NE(says.find("++"), std::string::npos) << says;
    EXPECT_EQ(says.find('\x01'), std::string::npos) << says;
  }
}

TEST_F(OptionSources, AnOptionThatIsGivenAsAWordGivesWayToNoOtherSource) {
  const Variable place("VITROVE_PLACE", "variable");
  const ConfigFile file("place = \"file\"\n");
  parse({"look", "word", "--config", file.path()});
  EXPECT_EQ(word_, "word");
  EXPECT_EQ(place_, "");
  app_.clear();
  parse({"look", "--", "word"});
  EXPECT_EQ(place_, "");
  app_.clear();
  parse({"look"});
  EXPECT_EQ(place_, "variable");
  app_.clear();
  parse({"check", "word"});
  EXPECT_EQ(names_, std::vector<std::string>{"word"});
}

TEST_F(OptionSources, OfOptionsThatExcludeEachOtherTheStrongerSourceCounts) {
  app_.get_subcommand("work")->get_option("--pool-size")->excludes("--api-key");
  const Variable size("VITROVE_POOL_SIZE", "7");
  run({"--api-key", "flag"});
  EXPECT_EQ(size_, "");
  EXPECT_EQ(key_, "flag");
  app_.clear();
  key_.clear();
  run_with_file("api-key = \"file\"\n");
  EXPECT_EQ(size_, "7");
  EXPECT_EQ(key_, "");
  app_.clear();
  const Variable key("VITROVE_API_KEY", "environment");
  run({});
  EXPECT_EQ(key_, "environment") << "the first that the command names";
}

TEST_F(OptionSources, AnyNameOfAnOptionWinsOverItsOthers) {
  const Variable admin("VITROVE_ADMIN_KEY", "from-environment");
  run({"--api-key", "from-flag"});
  EXPECT_EQ(key_, "from-flag");
}

TEST_F(OptionSources, EachLongNameIsAVariableAndTheFirstThatIsSetCounts) {
  const Variable api("VITROVE_API_KEY", "second");
  run({});
  EXPECT_EQ(key_, "second");
  app_.clear();
  const Variable admin("VITROVE_ADMIN_KEY", "first");
  run({});
  EXPECT_EQ(key_, "first");
}

TEST_F(OptionSources, AFileGivesWayToEveryNameOfItsOptions) {
  const ConfigFile file("jobs = 5\nadmin-key = \"from-file\"\n");
  run({"--config", file.path(), "-j3", "--api-key=from-flag"});
  EXPECT_EQ(jobs_, 3);
  EXPECT_EQ(key_, "from-flag");
}

TEST_F(OptionSources, NumbersOfAFileKeepTheirDigits) {
  for (const auto& [written, read] : std::initializer_list<std::pair<std::string, std::string>>{
           {"6.4e7", "64000000"}, {"123456789.5", "123456789.5"}, {"0.1", "0.1"}, {"7", "7"}}) {
    const ConfigFile file("pool-size = " + written + "\n");
    run({"--config", file.path()});
    EXPECT_EQ(size_, read);
    app_.clear();
  }
}

TEST_F(OptionSources, AnEmptyValueIsRefusedAndTakesNoOtherWordForItself) {
  const Variable admin("VITROVE_ADMIN_KEY", "");
  const Variable size("VITROVE_POOL_SIZE", "7");
  EXPECT_THROW(run({}), Error);
  EXPECT_TRUE(key_.empty());
}

TEST_F(OptionSources, AnEmptyValueOrListInAFileIsRefused) {
  for (const char* text : {"admin-key = \"\"\npool-size = 7\n", "api-key = []\n"}) {
    const ConfigFile file(text);
    EXPECT_THROW(run({"--config", file.path()}), Error) << text;
    app_.clear();
  }
}

TEST_F(OptionSources, AValueInBracketsIsTextWhereverItComesFrom) {
  const std::vector<std::string> texts{"[x]", "[a,b]", "[]", "[[x]]", "[", "plain"};
  for (const std::string& text : texts) {
    run({"--name", text, "--name=" + text, "--api-key", text, text});
    EXPECT_EQ(names_, (std::vector<std::string>{text, text})) << text;
    EXPECT_EQ(key_, text);
    EXPECT_EQ(files_, std::vector<std::string>{text});
    app_.clear();
    const Variable name("VITROVE_NAME", text);
    run({});
    EXPECT_EQ(names_, std::vector<std::string>{text});
    app_.clear();
  }
  const ConfigFile file("name = [\"[a,b]\", \"[c]\"]\n");
  run({"--config", file.path()});
  EXPECT_EQ(names_, (std::vector<std::string>{"[a,b]", "[c]"}));
}

TEST_F(OptionSources, AShortOptionsValueBeginsBehindItsLetter) {
  run({"-nrun=[a].safetensors", "-n[a,b]", "-n=[c]", "-n", "x=[d]", "--name=y=[e]"});
  EXPECT_EQ(names_,
            (std::vector<std::string>{"run=[a].safetensors", "[a,b]", "=[c]", "x=[d]", "y=[e]"}));
}

TEST_F(OptionSources, OneFileServesAllCommandsAndEachTakesWhatItKnows) {
  const ConfigFile file("jobs = 5\nhours = 7\n[rest]\nhours = 8\n[work]\npool-size = \"9\"\n");
  run({"--config", file.path()});
  EXPECT_EQ(jobs_, 5);
  EXPECT_EQ(size_, "9");
}

TEST_F(OptionSources, AKeyThatNoCommandKnowsIsRefusedAndSoIsAForeignOneInTheOwnTable) {
  for (const char* text :
       {"jbos = 5\n", "[work]\nhours = 8\n", "config = \"x\"\n", "help = true\n"}) {
    const ConfigFile file(text);
    EXPECT_THROW(run({"--config", file.path()}), Error) << text;
    app_.clear();
  }
}

TEST_F(OptionSources, OfAnOptionsNamesInOneTableTheFirstCounts) {
  run_with_file("api-key = \"second\"\nadmin-key = \"first\"\n");
  EXPECT_EQ(key_, "first");
}

TEST_F(OptionSources, ACommandsOwnTableWinsOverTheTop) {
  run_with_file(
      "jobs = 1\nname = [\"a\"]\nadmin-key = \"top\"\n"
      "[work]\njobs = 2\nname = [\"b\", \"c\"]\napi-key = \"own\"\n");
  EXPECT_EQ(jobs_, 2);
  EXPECT_EQ(names_, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(key_, "own");
}

TEST_F(OptionSources, AListAtTheTopIsForCommandsThatTakeSeveral) {
  run_with_file("api-key = [\"k1\", \"k2\"]\npool-size = [\"7\"]\n");
  EXPECT_EQ(key_, "");
  EXPECT_EQ(size_, "7");
  app_.clear();
  EXPECT_ANY_THROW(run_with_file("[work]\napi-key = [\"k1\", \"k2\"]\n"));
}

TEST_F(OptionSources, ATableThatIsNoCommandsIsRefused) {
  for (const char* text : {"[wrok]\njobs = 5\n", "[group.wrok]\n"}) {
    EXPECT_THROW(run_inner(text), Error) << text;
    app_.clear();
  }
}

TEST_F(OptionSources, ACommandOfAGroupHasATableInTheGroups) {
  run_inner("jobs = 5\ndepth = 1\n[group.inner]\ndepth = 3\n[work]\njobs = 7\n");
  EXPECT_EQ(depth_, 3);
  app_.clear();
  run_inner("[group]\ndepth = 2\n");
  EXPECT_EQ(depth_, 2);
  app_.clear();
  run_with_file("depth = 1\n[group.inner]\ndepth = 3\n");
  EXPECT_THROW(run_inner("[group]\njobs = 2\n"), Error);
}

TEST_F(OptionSources, ADirectoryIsNoFile) {
  EXPECT_THROW(run({"--config", std::filesystem::temp_directory_path().string()}), Error);
}

std::string wrong_with(const std::string& address) { return server_address(address); }

TEST(ServerAddress, IsOneOfHttpOrAHostAlone) {
  for (const char* good : {"http://127.0.0.1:8090", "https://x", "localhost:8090", "x"})
    EXPECT_EQ(wrong_with(good), "") << good;
  EXPECT_THAT(wrong_with("redis://x"), HasSubstr("and not redis://x"));
}

TEST(ServerAddress, SaysWhatIsWrongWithBlanks) {
  for (const char* text : {"http://x ", "http://x\n", "http://x\r\n", "x\t"})
    EXPECT_THAT(wrong_with(text), HasSubstr("ends with a blank or a new line")) << text;
  for (const char* text : {" http://x", "\nhttp://x", "\tx", " http://x "})
    EXPECT_THAT(wrong_with(text), HasSubstr("begins with a blank or a new line")) << text;
  for (const char* text : {"http://x http://y", "http://x\nhttp://y", "x\ty"})
    EXPECT_THAT(wrong_with(text), HasSubstr("not several words")) << text;
  EXPECT_THAT(wrong_with(" \n"), HasSubstr("blank"));
}

TEST(QueryValue, EncodesAllButPlainCharacters) {
  EXPECT_EQ(query_value("Az09-._~"), "Az09-._~");
  EXPECT_EQ(query_value("*&scope=all #\xff"), "%2A%26scope%3Dall%20%23%FF");
}

TEST(JsonLine, TakesNamesThatAreNoText) {
  EXPECT_EQ(json_line({{"file", "a\xff.png"}}), "{\"file\":\"a\xEF\xBF\xBD.png\"}");
}

}  // namespace
}  // namespace vitrove::cli
