// A name of several addresses, of which the first one is dead.
#include <cerrno>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "stores/net/connect.h"

namespace vitrove::net {
namespace {

class Listener {
 public:
  explicit Listener(int backlog) {
    auto* const address = reinterpret_cast<sockaddr*>(&address_.storage);
    reinterpret_cast<sockaddr_in*>(address)->sin_family = AF_INET;
    reinterpret_cast<sockaddr_in*>(address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address_.length = sizeof(sockaddr_in);
    EXPECT_EQ(::bind(fd_.get(), address, address_.length), 0);
    EXPECT_EQ(::listen(fd_.get(), backlog), 0);
    EXPECT_EQ(::getsockname(fd_.get(), address, &address_.length), 0);
  }
  const Address& address() const { return address_; }

  // From now on it answers nobody, as a host behind a firewall that drops everything.
  void fill() {
    for (int i = 0; i < 8; ++i) {
      const UniqueFd& one =
          crowd_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const auto* const target = reinterpret_cast<const sockaddr*>(&address_.storage);
      if (::connect(one.get(), target, address_.length) != 0) {
        EXPECT_EQ(errno, EINPROGRESS);
      }
    }
  }

 private:
  UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  Address address_;
  std::vector<UniqueFd> crowd_;
};

TEST(ConnectToAny, LeavesTimeForTheAddressesAfterOneThatNeverAnswers) {
  Listener silent(0);
  silent.fill();
  const Listener good(8);
  const std::vector<Address> addresses = {silent.address(), good.address()};
  Fault fault;
  const UniqueFd socket =
      connect_to_any(addresses, Clock::now() + std::chrono::seconds(4), {}, fault);
  EXPECT_TRUE(socket) << fault.detail;
}

TEST(ConnectToAny, TellsTheFaultOfTheLastAddressWhenNoneAnswers) {
  Listener silent(0);
  silent.fill();
  const std::vector<Address> addresses = {silent.address(), silent.address()};
  Fault fault;
  const auto deadline = Clock::now() + std::chrono::milliseconds(100);
  EXPECT_FALSE(connect_to_any(addresses, deadline, {}, fault));
  EXPECT_EQ(fault.status, StoreStatus::timeout);
}

}  // namespace
}  // namespace vitrove::net
