// What a Mooncake client does wrong, shown with provider (b): codes, lies, hangs, crashes. All of
// it is a miss or a failed put, and a restart of the helper (field cases B43, B49, B50, B54 to
// B57).
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/test_values.h"
#include "unit/mooncake/fake_cluster.h"
#include "unit/mooncake/helper_facts.h"
#include "unit/mooncake/waiting.h"

namespace vitrove::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

StoreContext within(milliseconds time) {
  StoreContext context;
  context.deadline = std::chrono::steady_clock::now() + time;
  return context;
}

class LibraryFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(put_one(*store_, known_, value_).ok());
    pid_ = helper_pid(*store_);
    ASSERT_GT(pid_, 0);
  }
  static MooncakeStoreOptions quick(MooncakeStoreOptions options) {
    options.hang_timeout = milliseconds(100);
    return options;
  }
  StoreResult get(const StoreContext& context = {}) {
    Bytes bytes(value_.size());
    const StoreResult result = get_one(*store_, known_, bytes, context);
    if (result.ok()) {
      EXPECT_EQ(bytes, value_);
    }
    return result;
  }
  bool works_again() {
    return eventually([this] { return get().ok(); });
  }

  FakeCluster cluster_;
  const EmbeddingKey known_ = key_number(1);
  const Bytes value_ = pattern(1, 5000);
  std::unique_ptr<EmbeddingStore> store_ = make_mooncake_store(quick(cluster_.options()));
  pid_t pid_ = -1;
};

struct CodeCase {
  const char* faults;
  StoreStatus get;
  StoreStatus put;
};

class LibraryCodes : public LibraryFaults, public ::testing::WithParamInterface<CodeCase> {};

TEST_P(LibraryCodes, BecomeOneKeysAnswer) {
  const CodeCase& expected = GetParam();
  const std::string code = expected.faults;
  cluster_.set_faults("get code " + code + "\nput code " + code);
  EXPECT_EQ(to_string(get().status), to_string(expected.get));
  EXPECT_EQ(to_string(put_one(*store_, key_number(2), value_).status), to_string(expected.put));
  cluster_.set_faults("");
  EXPECT_TRUE(works_again());
  EXPECT_EQ(helper_pid(*store_), pid_) << "a code is no reason to start the helper anew";
}

INSTANTIATE_TEST_SUITE_P(
    All, LibraryCodes,
    ::testing::Values(CodeCase{"-1", StoreStatus::io_error, StoreStatus::io_error},
                      CodeCase{"-200", StoreStatus::no_space, StoreStatus::no_space},
                      CodeCase{"-300", StoreStatus::unavailable, StoreStatus::unavailable},
                      CodeCase{"-600", StoreStatus::io_error, StoreStatus::io_error},
                      CodeCase{"-703", StoreStatus::absent, StoreStatus::io_error},
                      CodeCase{"-704", StoreStatus::absent, StoreStatus::io_error},
                      CodeCase{"-707", StoreStatus::absent, StoreStatus::io_error},
                      CodeCase{"-800", StoreStatus::io_error, StoreStatus::io_error},
                      CodeCase{"-900", StoreStatus::unavailable, StoreStatus::unavailable},
                      CodeCase{"-901", StoreStatus::timeout, StoreStatus::timeout}));

TEST_F(LibraryFaults, CountAnExistingKeyAsStoredOnlyWhenItCanBeRead) {
  cluster_.set_faults("put code -705");
  EXPECT_TRUE(put_one(*store_, known_, value_).ok());
  // Whoever began to write it has left it unfinished.
  EXPECT_EQ(put_one(*store_, key_number(2), value_).status, StoreStatus::io_error);
  EXPECT_EQ(
      put_one(*store_, key_number(3), value_, PutMode::if_absent, within(milliseconds(50))).status,
      StoreStatus::timeout);
}

TEST_F(LibraryFaults, AskOnceMoreWhenALeaseRanOutDuringTheTransfer) {
  cluster_.set_faults("once get code -707");
  EXPECT_EQ(to_string(get().status), "ok");
}

TEST_F(LibraryFaults, BelieveNoSuccessWithoutEveryByte) {
  cluster_.set_faults("get short");
  EXPECT_EQ(get().status, StoreStatus::size_mismatch);
  cluster_.set_faults("get empty");
  EXPECT_EQ(get().status, StoreStatus::io_error);
}

TEST_F(LibraryFaults, LetTheGetDecideWhenAHolderHasGone) {
  cluster_.set_faults("get code -800");
  EXPECT_TRUE(exists(*store_, known_).ok());
  EXPECT_EQ(get().status, StoreStatus::io_error);
  cluster_.set_faults("exist code 1\nget code -704\nsize code -704");
  EXPECT_EQ(exists(*store_, known_).status, StoreStatus::absent)
      << "its size is not known any more";
  EXPECT_EQ(get().status, StoreStatus::absent);
}

TEST_F(LibraryFaults, ForceARemovalThoughAReaderHoldsALease) {
  cluster_.set_faults("remove leased");
  EXPECT_TRUE(remove_one(*store_, known_).ok());
  EXPECT_EQ(exists(*store_, known_).status, StoreStatus::absent);
}

TEST_F(LibraryFaults, SpoilOneCallAndStartAnotherHelperWhenItDies) {
  for (const char* how : {"get abort", "exist exit", "put abort"}) {
    const pid_t before = helper_pid(*store_);
    cluster_.set_faults(how);
    const StoreStatus status = std::string_view(how).starts_with("get") ? get().status
                               : std::string_view(how).starts_with("put")
                                   ? put_one(*store_, key_number(9), value_).status
                                   : exists(*store_, known_).status;
    EXPECT_EQ(to_string(status), "unavailable") << how;
    cluster_.set_faults("");
    ASSERT_TRUE(works_again()) << how;
    EXPECT_NE(helper_pid(*store_), before) << how;
    EXPECT_FALSE(exists_process(before)) << "a zombie";
  }
}

TEST_F(LibraryFaults, TellHowAHelperEndedAndItsLastWords) {
  cluster_.set_faults("get abort\nsetup hang");
  EXPECT_EQ(get().status, StoreStatus::unavailable);
  ASSERT_TRUE(
      eventually([&] { return store_->health().detail.find("signal") != std::string::npos; }));
  const std::string detail = store_->health().detail;
  EXPECT_THAT(detail, HasSubstr("signal 6"));
  EXPECT_THAT(detail, HasSubstr("a check failed"));
  EXPECT_THAT(detail, HasSubstr("libfake_mooncake.so"));
}

TEST_F(LibraryFaults, KillAHelperThatHangsAndStartAnother) {
  cluster_.set_faults("get hang");
  EXPECT_EQ(get(within(milliseconds(50))).status, StoreStatus::timeout);
  cluster_.set_faults("");
  ASSERT_TRUE(eventually([&] { return !exists_process(pid_); }));
  ASSERT_TRUE(works_again());
  EXPECT_NE(helper_pid(*store_), pid_);
}

TEST_F(LibraryFaults, LeaveWhenTheCallerDoes) {
  cluster_.set_faults("exist hang");
  std::stop_source source;
  StoreContext context;
  context.cancel = source.get_token();
  auto answer = std::async(std::launch::async, [&] { return exists(*store_, known_, context); });
  source.request_stop();
  EXPECT_EQ(answer.get().status, StoreStatus::cancelled);
}

TEST_F(LibraryFaults, NeverLetALateAnswerAnswerAnotherCall) {
  const Bytes other = pattern(7, value_.size());
  ASSERT_TRUE(put_one(*store_, key_number(7), other).ok());
  store_ = make_mooncake_store(cluster_.options());  // with its usual patience
  ASSERT_TRUE(works_again());
  for (int round = 0; round < 4; ++round) {
    // Far beyond the deadline, also where a thread waits long for its turn on a busy machine.
    const auto late = std::chrono::steady_clock::now() + milliseconds(600);
    cluster_.set_faults("get slow 500");
    EXPECT_EQ(get(within(milliseconds(5))).status, StoreStatus::timeout);
    cluster_.set_faults("");
    do {
      Bytes bytes(other.size());
      ASSERT_TRUE(get_one(*store_, key_number(7), bytes).ok());
      ASSERT_EQ(bytes, other) << round;
    } while (std::chrono::steady_clock::now() < late);
  }
}

TEST_F(LibraryFaults, CloseEverythingHoweverOftenAHelperDies) {
  ASSERT_TRUE(works_again());
  const auto files = open_files("/proc/self").size();
  for (int round = 0; round < 3; ++round) {
    const pid_t dead = helper_pid(*store_);
    ASSERT_GT(dead, 0);  // -1 would mean every process
    ::kill(dead, SIGKILL);
    ASSERT_TRUE(eventually([&] { return !exists_process(dead); }));
    ASSERT_TRUE(works_again());
  }
  EXPECT_EQ(open_files("/proc/self").size(), files);
  const pid_t last = helper_pid(*store_);
  store_.reset();
  EXPECT_FALSE(exists_process(last));
  EXPECT_LT(open_files("/proc/self").size(), files);
}

TEST_F(LibraryFaults, EndWithTheStoreThoughTheHelperHangs) {
  cluster_.set_faults("get hang\nunregister hang");
  EXPECT_EQ(get(within(milliseconds(20))).status, StoreStatus::timeout);
  store_.reset();
  EXPECT_FALSE(exists_process(pid_));
}

TEST_F(LibraryFaults, HandOnNoDescriptorNoSecretAndNoBlockedSignal) {
  // A thread that is just being made has all of them blocked for a moment.
  const std::set<std::string> none = {"0000000000000000"};
  EXPECT_TRUE(eventually([&] {
    auto masks = blocked_signals(pid_);
    masks.erase("fffffffe7ffbfeff");  // the thread sanitizer's own thread: all that can be
    return masks == none;
  }));
  const std::string environment = text_of(proc_of(pid_) / "environ");
  EXPECT_THAT(environment, HasSubstr("MC_RPC_TIMEOUT_MS=2000"));
  EXPECT_THAT(environment, HasSubstr("MC_RPC_CONNECT_TIMEOUT_MS=1000"));
  EXPECT_THAT(environment, HasSubstr("MC_TCP_ENABLE_CONNECTION_POOL=1"));
  EXPECT_EQ(environment.find("VITROVE_"), environment.npos);
  const auto ours = open_files("/proc/self");
  for (const std::string& file : open_files(proc_of(pid_))) {
    const bool is_expected = file == "/dev/null" || file.starts_with("pipe:") ||
                             file.starts_with("socket:") || file.find("fake") != file.npos;
    EXPECT_TRUE(is_expected) << file;
  }
  EXPECT_LE(open_files(proc_of(pid_)).size(), 4u);
}

}  // namespace
}  // namespace vitrove::testing
