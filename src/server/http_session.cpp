#include "server/http_session.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "server/due_timer.h"
#include "server/error_reply.h"
#include "server/request_framing.h"
#include "server/response_head.h"
#include "server/send_pace.h"

namespace vitrove {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t max_head_bytes = 16 * 1024;
// Holds a head, or what of a body has not been taken yet. Bounded: while Beast waits for the end of
// a chunk's extension or of the trailer it only lengthens the buffer.
constexpr std::size_t max_buffered = 128 * 1024;
// What is read of a body at once, and what a connection may keep for that while it is idle.
constexpr std::uint64_t body_read_bytes = 64 * 1024;
constexpr std::size_t max_idle_buffer = 4 * 1024;
// What a client that was refused may still send before we hang up, and for how long.
constexpr std::size_t linger_bytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds linger_time{2};
// Connections that have not asked anything yet when the server drains.
constexpr std::chrono::seconds drain_grace{1};

struct BadHead {
  int status;
  std::string_view code;
  std::string_view message;
};

BadHead describe(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return {431, "too_large", "the request's head is too large"};
  }
  return {400, "invalid_argument", "not a valid HTTP request"};
}

bool is_foreign(boost::beast::string_view site) {
  return site == "cross-site" || site == "same-site";
}

class Session final : public Connection, public std::enable_shared_from_this<Session> {
 public:
  Session(net::ip::tcp::socket socket, HttpHandler& handler, const SessionLimits& limits,
          ByteAllowance& bodies, SessionRegistry& registry)
      : socket_(std::move(socket)),
        handler_(handler),
        limits_(limits),
        bodies_(bodies),
        registry_(registry),
        pace_(limits.send_stall_timeout),
        timer_(socket_.get_executor(), *this, &Session::on_due) {}
  ~Session() override {
    release_body();
    registry_.remove(this);
  }

  void start() {
    net::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->read_head(); });
  }

  void drain() override {
    net::post(socket_.get_executor(), [self = shared_from_this()] { self->on_drain(); });
  }
  void abort() override {
    net::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
  }

 private:
  enum class State { reading_head, reading_body, working, writing, lingering, closed };

  // --- reading ---------------------------------------------------------------------------------

  void read_head() {
    state_ = State::reading_head;
    // Accepted before the listener closed, started after all others were told.
    if (registry_.is_draining()) draining_ = true;
    give_back_room();
    request_ = {};
    stop_ = {};
    is_late_ = false;
    is_head_request_ = false;
    timer_.set(draining_ ? Clock::now() + drain_grace : Clock::now() + limits_.idle_timeout);
    await_head();
  }

  void await_head() {
    parser_.emplace();
    parser_->header_limit(max_head_bytes);
    parser_->body_limit(boost::none);  // set by the route
    http::async_read_header(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_head(error); });
  }

  // Some clients send one after a body; it belongs to nothing (RFC 9112, section 2.2).
  bool has_empty_line() const {
    const std::string_view input = unread();
    return input == "\r" || input.starts_with("\r\n");
  }

  void skip_empty_lines() {
    while (unread().starts_with("\r\n")) buffer_.consume(2);
    if (unread() != "\r") return await_head();
    socket_.async_read_some(buffer_.prepare(scratch_.size()),
                            [self = shared_from_this()](error_code error, std::size_t got) {
                              if (self->state_ == State::closed) return;
                              if (error) return self->close();
                              self->buffer_.commit(got);
                              self->await_head();
                            });
  }

  std::string_view unread() const {
    const auto input = buffer_.data();
    return {static_cast<const char*>(input.data()), input.size()};
  }

  void on_head(error_code error) {
    if (state_ == State::closed) return;
    if (error == http::error::bad_method && has_empty_line()) return skip_empty_lines();
    if (error) return on_read_error(error);
    ++served_;
    take_head();
    Admission admission = handler_.admit(request_);
    if (auto refusal = refuse_framing(parser_->get(), request_.request_id))
      return write(std::move(*refusal));
    if (admission.refusal) return refuse(std::move(*admission.refusal));
    ends_with_client_ = admission.ends_with_client;
    const auto length = parser_->content_length();
    if (length && *length > admission.body_limit) return refuse_body();
    parser_->body_limit(admission.body_limit);
    state_ = State::reading_body;
    timer_.set(request_.deadline);
    if (wants_continue()) return write_continue();
    read_body();
  }

  void on_read_error(error_code error) {
    if (error == http::error::body_limit) return refuse_body();
    const bool is_malformed =
        error.category() == http::make_error_code(http::error::bad_method).category() &&
        error != http::error::end_of_stream && error != http::error::partial_message;
    if (!is_malformed) return close();
    if (request_.request_id.empty()) request_.request_id = make_req_id();
    const BadHead bad = describe(error);
    refuse(error_reply(bad.status, bad.code, bad.message, request_.request_id));
  }

  void take_head() {
    const auto& head = parser_->get();
    request_.received = Clock::now();
    const auto length = parser_->content_length();
    if (length) request_.declared_body = *length;
    request_.is_chunked = parser_->chunked();
    request_.method = std::string_view(head.method_string().data(), head.method_string().size());
    is_head_request_ = request_.method == "HEAD";
    keep_alive_ = parser_->keep_alive();
    const auto authorization = head[http::field::authorization];
    request_.authorization = std::string_view(authorization.data(), authorization.size());
    request_.is_from_page =
        head.count(http::field::origin) > 0 || is_foreign(head["Sec-Fetch-Site"]);
    const auto id = head["X-Request-Id"];
    if (is_valid_req_id({id.data(), id.size()})) request_.request_id.assign(id.data(), id.size());
    const std::string target(head.target().data(), head.target().size());
    // What cannot be parsed has an empty path, which is refused.
    if (!parse_target(target, request_)) request_.path.clear();
    request_.cancel = stop_.get_token();
  }

  bool wants_continue() const {
    const auto& head = parser_->get();
    return head.version() >= 11 && !parser_->is_done() && buffer_.size() == 0 &&
           boost::beast::iequals(head[http::field::expect], "100-continue");
  }

  void write_continue() {
    static constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
    net::async_write(socket_, net::buffer(text),
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (self->state_ != State::reading_body) return;
                       if (self->is_late_) return self->refuse(self->too_late());
                       if (error) return self->close();
                       self->read_body();
                     });
  }

  // Beast reads as much at once as its buffer has room for, and that is 512 bytes when nobody says
  // more: 400 calls for a picture of 200 KB. Made once some of a body is there: heads that promise
  // one cost nothing.
  void make_room_for_body() {
    if (parser_->is_done()) return;
    const std::uint64_t length = request_.declared_body.value_or(body_read_bytes);
    buffer_.reserve(std::max<std::uint64_t>(buffer_.size(), std::min(length, body_read_bytes)));
  }
  // An idle connection holds no more than its next head needs.
  void give_back_room() {
    if (buffer_.size() == 0 && buffer_.capacity() > max_idle_buffer) buffer_.shrink_to_fit();
  }

  void read_body() {
    if (parser_->is_done()) return on_request();
    http::async_read_some(
        socket_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_body(error); });
  }

  void on_body(error_code error) {
    if (state_ != State::reading_body) return;
    if (is_late_) return refuse(too_late());
    if (error) return on_read_error(error);
    const std::uint64_t held = parser_->get().body().size();
    if (held > reserved_ && !reserve_body(held - reserved_)) return refuse(no_room());
    make_room_for_body();
    read_body();
  }

  bool reserve_body(std::uint64_t bytes) {
    if (bytes == 0) return true;
    if (!bodies_.take(bytes)) return false;
    reserved_ += bytes;
    return true;
  }
  void release_body() { bodies_.give_back(std::exchange(reserved_, 0)); }

  // --- working ---------------------------------------------------------------------------------

  void on_request() {
    state_ = State::working;
    request_.body = std::move(parser_->get().body());
    const std::uint64_t turn = ++turn_;
    HttpRequest request = request_;  // what the reply is booked under stays here
    request.body = std::move(request_.body);
    auto answered = std::make_shared<std::atomic<bool>>(false);
    handler_.handle(std::move(request),
                    [self = shared_from_this(), turn, answered](HttpResponse response) {
                      if (answered->exchange(true)) return;
                      net::dispatch(self->socket_.get_executor(),
                                    [self, turn, response = std::move(response)]() mutable {
                                      self->on_response(turn, std::move(response));
                                    });
                    });
    if (state_ == State::working && ends_with_client_) watch_client();
  }

  // Nothing should come while the client waits, but its end.
  void watch_client() {
    if (watching_) return;
    watching_ = true;
    socket_.async_wait(net::ip::tcp::socket::wait_read,
                       [self = shared_from_this()](error_code error) {
                         self->watching_ = false;
                         if (!error && self->state_ == State::working) self->on_readable();
                       });
  }

  void on_readable() {
    char byte;
    const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got > 0) return;  // the next request, sent ahead
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return watch_client();
    close();
  }

  void on_response(std::uint64_t turn, HttpResponse response) {
    if (state_ != State::working || turn != turn_) return;
    write(std::move(response));
  }

  // --- writing ---------------------------------------------------------------------------------

  // Ends a request whose body was not, or not wholly, read.
  void refuse(HttpResponse response) {
    if (!parser_->is_done()) response.close = true;
    write(std::move(response));
  }
  void refuse_body() {
    if (request_.request_id.empty()) request_.request_id = make_req_id();
    refuse(error_reply(413, "too_large", "the body is larger than this route takes",
                       request_.request_id));
  }
  HttpResponse no_room() const {
    return error_reply(429, "queue_full",
                       "too many request bodies are held: the limit is " +
                           std::to_string(bodies_.limit()) + " bytes in all",
                       request_.request_id);
  }
  HttpResponse too_late() const {
    return error_reply(504, "deadline_exceeded", "the request took too long", request_.request_id);
  }

  void write(HttpResponse response) {
    state_ = State::writing;
    release_body();
    response_ = std::move(response);
    if (response_.req_id.empty()) response_.req_id = request_.request_id;
    handler_.on_reply(request_, response_);
    if (registry_.is_draining()) draining_ = true;
    if (draining_ || !keep_alive_) response_.close = true;
    head_ = response_head(response_);
    pending_.clear();
    pending_.push_back(net::buffer(head_));
    if (!is_head_request_) {
      pending_.push_back(net::buffer(response_.body));
      for (const auto& part : response_.parts) {
        pending_.push_back(net::const_buffer(part.data(), part.size()));
      }
    }
    next_pending_ = 0;
    pace_.begin(Clock::now());
    write_some();
  }

  void write_some() {
    timer_.set(pace_.due());
    const std::span<const net::const_buffer> rest = std::span(pending_).subspan(next_pending_);
    socket_.async_write_some(rest, [self = shared_from_this()](error_code error, std::size_t sent) {
      self->on_written(error, sent);
    });
  }

  void on_written(error_code error, std::size_t sent) {
    if (state_ != State::writing) return;
    if (error) return close();
    sent_ += sent;
    while (next_pending_ < pending_.size() && sent >= pending_[next_pending_].size()) {
      sent -= pending_[next_pending_++].size();
    }
    if (next_pending_ == pending_.size()) return on_reply_sent();
    pending_[next_pending_] += sent;
    pace_.look(taken(), Clock::now());
    write_some();
  }

  // Of all that was sent, what the client's side has acknowledged.
  std::uint64_t taken() {
    int queued = 0;
    if (::ioctl(socket_.native_handle(), SIOCOUTQ, &queued) != 0) return sent_;
    return sent_ - std::min<std::uint64_t>(sent_, static_cast<unsigned>(queued));
  }

  void on_reply_sent() {
    const bool ends = response_.close || draining_;
    response_ = {};  // gives pins back
    if (!ends) return read_head();
    error_code ignored;
    const bool has_unread =
        !parser_->is_done() || buffer_.size() > 0 || socket_.available(ignored) > 0;
    if (!has_unread) return close();
    linger();
  }

  // --- ending ----------------------------------------------------------------------------------

  // Closing with unread input would reset the connection, and the reply might be lost with it.
  void linger() {
    state_ = State::lingering;
    error_code ignored;
    socket_.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
    timer_.set(Clock::now() + linger_time);
    discard();
  }

  void discard() {
    socket_.async_read_some(net::buffer(scratch_),
                            [self = shared_from_this()](error_code error, std::size_t got) {
                              self->discarded_ += got;
                              if (self->state_ != State::lingering) return;
                              if (error || self->discarded_ > linger_bytes) return self->close();
                              self->discard();
                            });
  }

  void close() {
    if (state_ == State::closed) return;
    state_ = State::closed;
    stop_.request_stop();
    release_body();
    error_code ignored;
    socket_.shutdown(net::ip::tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    // Only now: until the descriptor is closed another I/O thread may be sending these very bytes.
    response_ = {};
    timer_.cancel();
    registry_.remove(this);  // although a responder may hold the object for longer
  }

  void on_drain() {
    draining_ = true;
    if (state_ != State::reading_head) return;
    error_code ignored;
    const bool has_input = buffer_.size() > 0 || socket_.available(ignored) > 0;
    if (served_ > 0 && !has_input) return close();
    timer_.set(std::min(timer_.due(), Clock::now() + drain_grace));
  }

  // --- time ------------------------------------------------------------------------------------

  void on_due() {
    switch (state_) {
      case State::closed:
        return;
      case State::reading_body: {
        is_late_ = true;
        error_code ignored;
        socket_.cancel(ignored);
        return;
      }
      case State::working: {
        ++turn_;  // whatever comes later is not the answer
        stop_.request_stop();
        return write(too_late());
      }
      case State::writing: {
        pace_.look(taken(), Clock::now());
        if (pace_.due() <= Clock::now()) return close();
        return timer_.set(pace_.due());
      }
      default:
        return close();
    }
  }

  net::ip::tcp::socket socket_;
  HttpHandler& handler_;
  const SessionLimits limits_;
  ByteAllowance& bodies_;
  SessionRegistry& registry_;

  State state_ = State::reading_head;
  bool draining_ = false;
  bool keep_alive_ = true;
  bool is_head_request_ = false;
  bool is_late_ = false;
  bool ends_with_client_ = false;
  bool watching_ = false;
  std::uint64_t served_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t reserved_ = 0;  // of the allowance for bodies

  boost::beast::flat_buffer buffer_{max_buffered};
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  std::stop_source stop_;

  HttpResponse response_;
  std::string head_;
  std::vector<net::const_buffer> pending_;
  std::size_t next_pending_ = 0;
  SendPace pace_;
  std::uint64_t sent_ = 0;  // on this connection

  std::array<char, 4096> scratch_;
  std::size_t discarded_ = 0;

  DueTimer<Session> timer_;
};

}  // namespace

void start_http_session(net::ip::tcp::socket socket, HttpHandler& handler,
                        const SessionLimits& limits, ByteAllowance& bodies,
                        SessionRegistry& registry) {
  auto session = std::make_shared<Session>(std::move(socket), handler, limits, bodies, registry);
  registry.add(session);
  session->start();
}

}  // namespace vitrove
