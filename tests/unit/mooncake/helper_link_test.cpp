// Who reads what a helper says: the supervisor, or a caller who has borrowed the reading from him.
#include "stores/mooncake/helper_link.h"

#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace vitrove::mooncake {
namespace {

using Read = HelperLink::Read;
using wire::Type;

class Borrowing : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_.reset(ends[0]);
    helpers_.reset(ends[1]);
    link_.open(ours_.get());
  }
  void TearDown() override { link_.close(); }

  void say(std::initializer_list<std::uint64_t> calls) const {
    wire::Payload bytes;
    for (const std::uint64_t call : calls) {
      const auto header = wire::encode({Type::answer, call, 0});
      bytes.insert(bytes.end(), header.begin(), header.end());
    }
    say_bytes(bytes);
  }
  void say_bytes(std::span<const std::byte> bytes) const {
    ASSERT_EQ(::send(helpers_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Whether the supervisor is told of something to read, now.
  bool supervisor_hears() { return link_.poll(-1, 0).socket; }

  UniqueFd ours_, helpers_;
  HelperLink link_;
  HelperLink::Frame frame_;
  std::atomic<bool> is_lent_{false};
};

TEST_F(Borrowing, IsForOneAtATime) {
  {
    const auto loan = link_.borrow();
    ASSERT_TRUE(loan);
    EXPECT_FALSE(link_.borrow());
    EXPECT_FALSE(link_.take_turn());
  }
  const auto turn = link_.take_turn();
  ASSERT_TRUE(turn);
  EXPECT_FALSE(link_.borrow());
}

TEST_F(Borrowing, LeavesTheSupervisorAsleep) {
  {
    auto loan = link_.borrow();
    ASSERT_TRUE(loan);
    say({7});
    EXPECT_FALSE(supervisor_hears());
    ASSERT_EQ(loan.wait_for(frame_), Read::frame);
    EXPECT_EQ(frame_.header.call, 7U);
    EXPECT_EQ(loan.read_on(frame_), Read::nothing);
  }
  EXPECT_FALSE(supervisor_hears());
  say({8});
  EXPECT_TRUE(supervisor_hears());
  ASSERT_EQ(link_.read(frame_), Read::frame);
  EXPECT_EQ(frame_.header.call, 8U);
}

TEST_F(Borrowing, HandsBackWhatIsNotTheBorrowers) {
  {
    auto loan = link_.borrow();
    ASSERT_TRUE(loan);
    say({1, 2, 3});
    ASSERT_EQ(loan.wait_for(frame_), Read::frame);
    ASSERT_EQ(loan.read_on(frame_), Read::frame);
    loan.leave(frame_);
  }
  EXPECT_FALSE(link_.borrow()) << "not before the supervisor has seen it";
  EXPECT_TRUE(supervisor_hears());
  for (const std::uint64_t call : {2, 3}) {
    ASSERT_EQ(link_.read(frame_), Read::frame);
    EXPECT_EQ(frame_.header.call, call);
  }
  EXPECT_EQ(link_.read(frame_), Read::nothing);
  EXPECT_TRUE(link_.borrow());
}

TEST_F(Borrowing, LeavesNonsenseAndTheEndToTheSupervisor) {
  {
    auto loan = link_.borrow();
    ASSERT_TRUE(loan);
    say_bytes(std::array<std::byte, wire::header_bytes>{});
    EXPECT_EQ(loan.wait_for(frame_), Read::nonsense);
  }
  EXPECT_TRUE(supervisor_hears()) << "though it has left the socket";
  EXPECT_EQ(link_.read(frame_), Read::nonsense);

  link_.close();
  link_.open(ours_.get());
  {
    auto loan = link_.borrow();
    ASSERT_TRUE(loan);
    helpers_.reset();
    EXPECT_EQ(loan.wait_for(frame_), Read::closed);
  }
  EXPECT_TRUE(supervisor_hears());
  EXPECT_EQ(link_.read(frame_), Read::closed);
}

TEST_F(Borrowing, EndsWhenTheLinkIsClosed) {
  std::thread borrower([this] {
    auto loan = link_.borrow();
    EXPECT_TRUE(loan);
    is_lent_ = true;
    is_lent_.notify_all();
    HelperLink::Frame none;
    EXPECT_EQ(loan.wait_for(none), Read::nothing);
  });
  is_lent_.wait(false);
  link_.close();  // waits for him
  EXPECT_FALSE(link_.borrow());
  borrower.join();
}

}  // namespace
}  // namespace vitrove::mooncake
