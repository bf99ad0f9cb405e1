#include "server/http_listener.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <pthread.h>

#include "base/log.h"
#include "server/error_reply.h"
#include "server/http_session.h"
#include "server/response_head.h"
#include "server/session_registry.h"
#include "server/turn_away.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

// How long to hold still when the process has no descriptor left.
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::chrono::seconds abort_patience{5};

std::vector<tcp::endpoint> resolve(const std::string& host, std::uint16_t port) {
  error_code error;
  const auto address = net::ip::make_address(host, error);
  if (!error) return {tcp::endpoint(address, port)};
  net::io_context context;
  tcp::resolver resolver(context);
  std::vector<tcp::endpoint> endpoints;
  for (const auto& entry :
       resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error)) {
    endpoints.push_back(entry.endpoint());
  }
  if (endpoints.empty()) {
    throw Error(ErrorCode::invalid_argument, "--host " + host + " is no address of any kind");
  }
  // Names such as localhost mean several: the plain one first.
  std::ranges::stable_partition(endpoints, [](const auto& e) { return e.address().is_v4(); });
  return endpoints;
}

bool is_out_of_descriptors(const error_code& error) {
  return error == net::error::no_descriptors || error == net::error::no_buffer_space ||
         error == net::error::no_memory ||
         error == error_code(ENFILE, boost::system::system_category());
}

}  // namespace

bool listens_beyond_loopback(const std::string& host) {
  const auto endpoints = resolve(host, 0);
  return !std::ranges::all_of(endpoints, [](const auto& e) { return e.address().is_loopback(); });
}

struct HttpListener::Impl {
  Impl(ListenerOptions listener_options, HttpHandler& http_handler, ByteAllowance& body_allowance)
      : options(std::move(listener_options)),
        handler(http_handler),
        bodies(body_allowance),
        strand(net::make_strand(context)),
        acceptor(strand),
        pause(strand) {
    limits.send_stall_timeout = options.send_stall_timeout;
  }

  void bind();
  void accept();
  void accept_later();
  void await_connection();
  void take(tcp::socket socket) noexcept;
  void refuse(tcp::socket socket);
  void empty_backlog();
  void close_door();
  void run_io();

  const ListenerOptions options;
  SessionLimits limits;
  HttpHandler& handler;
  ByteAllowance& bodies;
  // Outlives the context, whose end destroys the last sessions.
  SessionRegistry registry;
  std::atomic<std::uint32_t> leaving{0};
  net::io_context context;
  net::strand<net::io_context::executor_type> strand;
  tcp::acceptor acceptor;
  net::steady_timer pause;
  net::executor_work_guard<net::io_context::executor_type> work{context.get_executor()};
  std::vector<std::thread> threads;
  bool draining = false;  // on the strand
  std::uint16_t port = 0;
};

void HttpListener::Impl::bind() {
  const auto endpoint = resolve(options.host, options.port).front();
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(net::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  if (!error) {
    port = acceptor.local_endpoint().port();
    return;
  }
  error_code ignored;
  acceptor.close(ignored);
  if (error == net::error::address_in_use) {
    throw Error(ErrorCode::unavailable, "port " + std::to_string(options.port) + " is in use");
  }
  throw Error(ErrorCode::unavailable, "cannot listen on " + options.host + " port " +
                                          std::to_string(options.port) + ": " + error.message());
}

// Out of memory, or of descriptors, it goes on a little later: nobody else would ever accept again.
void HttpListener::Impl::accept() {
  try {
    await_connection();
  } catch (const std::exception& error) {
    logger()->error("no connection can be accepted now: {}", error.what());
    accept_later();
  }
}

void HttpListener::Impl::accept_later() {
  pause.expires_after(accept_pause);
  pause.async_wait([this](error_code stopped) {
    if (!stopped && !draining) accept();
  });
}

void HttpListener::Impl::await_connection() {
  acceptor.async_accept(net::make_strand(context), [this](error_code error, tcp::socket socket) {
    if (draining || error == net::error::operation_aborted) {
      if (!error) take(std::move(socket));
      return;
    }
    if (is_out_of_descriptors(error)) return accept_later();
    if (!error) take(std::move(socket));
    accept();
  });
}

// Out of memory it is one connection that is lost, and not all those to come.
void HttpListener::Impl::take(tcp::socket socket) noexcept {
  try {
    if (registry.count() >= options.max_connections) return refuse(std::move(socket));
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    start_http_session(std::move(socket), handler, limits, bodies, registry);
  } catch (const std::exception& error) {
    logger()->error("a connection could not be taken: {}", error.what());
  }
}

// Counted and logged like any other reply, though nobody knows what was asked.
void HttpListener::Impl::refuse(tcp::socket socket) {
  HttpRequest unread;
  unread.method = "-";
  unread.request_id = make_req_id();
  HttpResponse reply =
      error_reply(503, "unavailable", "too many connections are open", unread.request_id);
  reply.close = true;
  handler.on_reply(unread, reply);
  turn_away(std::move(socket), response_head(reply) + reply.body, leaving);
}

// The kernel has accepted these for us: their clients do not know that we are leaving.
void HttpListener::Impl::empty_backlog() {
  for (;;) {
    error_code error;
    tcp::socket socket(net::make_strand(context));
    acceptor.accept(socket, error);
    if (error) return;
    take(std::move(socket));
  }
}

void HttpListener::Impl::run_io() {
  pthread_setname_np(pthread_self(), "vt-io");
  for (;;) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      logger()->error("an I/O handler threw: {}", error.what());
    }
  }
}

HttpListener::HttpListener(ListenerOptions options, HttpHandler& handler, ByteAllowance& bodies)
    : impl_(std::make_unique<Impl>(std::move(options), handler, bodies)) {}

HttpListener::~HttpListener() { stop(); }

void HttpListener::start() {
  impl_->bind();
  net::post(impl_->strand, [this] { impl_->accept(); });
  for (std::uint32_t i = 0; i < impl_->options.io_threads; ++i) {
    impl_->threads.emplace_back([this] { impl_->run_io(); });
  }
}

std::uint16_t HttpListener::port() const { return impl_->port; }

void HttpListener::drain() {
  if (impl_->threads.empty()) return;
  std::promise<void> done;
  net::post(impl_->strand, [this, &done] {
    try {
      impl_->close_door();
    } catch (const std::exception& error) {
      logger()->error("drain: {}", error.what());  // and whoever waits goes on
    }
    done.set_value();
  });
  done.get_future().wait();
}

// Runs on the strand.
void HttpListener::Impl::close_door() {
  if (std::exchange(draining, true)) return;
  registry.begin_drain();
  empty_backlog();
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel();
  registry.drain_all();
}

bool HttpListener::wait_idle(std::chrono::steady_clock::time_point deadline) {
  return impl_->registry.wait_empty(deadline);
}

void HttpListener::stop() {
  if (impl_->threads.empty()) return;
  net::post(impl_->strand, [this] {
    impl_->draining = true;
    error_code ignored;
    impl_->acceptor.close(ignored);
    impl_->pause.cancel();
  });
  impl_->registry.abort_all();
  impl_->work.reset();
  // Their work is told to stop there, so this is worth waiting for.
  impl_->registry.wait_empty(std::chrono::steady_clock::now() + abort_patience);
  impl_->context.stop();
  for (auto& thread : impl_->threads) thread.join();
  impl_->threads.clear();
}

}  // namespace vitrove
