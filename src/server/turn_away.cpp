#include "server/turn_away.h"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace vitrove {
namespace {

namespace net = boost::asio;
using boost::system::error_code;

constexpr std::uint32_t max_leaving = 64;
constexpr std::chrono::seconds patience{1};

class Leaver final : public std::enable_shared_from_this<Leaver> {
 public:
  Leaver(net::ip::tcp::socket socket, std::atomic<std::uint32_t>& leaving)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), leaving_(leaving) {
    ++leaving_;
  }
  ~Leaver() { --leaving_; }

  void start() {
    net::post(socket_.get_executor(), [self = shared_from_this()] { self->wait(); });
  }

 private:
  void wait() {
    timer_.expires_after(patience);
    timer_.async_wait([self = shared_from_this()](error_code) {
      error_code ignored;
      self->socket_.close(ignored);
    });
    discard();
  }

  void discard() {
    socket_.async_read_some(net::buffer(scratch_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                              if (error) return static_cast<void>(self->timer_.cancel());
                              self->discard();
                            });
  }

  net::ip::tcp::socket socket_;
  net::steady_timer timer_;
  std::atomic<std::uint32_t>& leaving_;
  std::array<char, 1024> scratch_;
};

}  // namespace

void turn_away(net::ip::tcp::socket socket, std::string reply,
               std::atomic<std::uint32_t>& leaving) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(net::buffer(reply), ignored);
  socket.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
  const auto leaver = std::make_shared<Leaver>(std::move(socket), leaving);
  if (leaving <= max_leaving) leaver->start();
}

}  // namespace vitrove
