// What a hit over HTTP is compared with: Boost.Beast, used as its manual shows, sending one static
// buffer in answer to every request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace vitrove::bench {

class StaticBeastServer {
 public:
  StaticBeastServer(std::size_t body_bytes, int threads)
      : body_(body_bytes, 'x'), acceptor_(context_, {address(), 0}) {
    accept();
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~StaticBeastServer() {
    context_.stop();
    for (auto& thread : threads_) thread.join();
  }
  StaticBeastServer(const StaticBeastServer&) = delete;
  StaticBeastServer& operator=(const StaticBeastServer&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  using Tcp = boost::asio::ip::tcp;
  using Body = boost::beast::http::span_body<const char>;

  static boost::asio::ip::address address() { return boost::asio::ip::make_address("127.0.0.1"); }

  struct Session : std::enable_shared_from_this<Session> {
    Session(Tcp::socket socket, const std::vector<char>& body)
        : stream(std::move(socket)), static_body(body) {}

    void read() {
      request = {};
      stream.expires_after(std::chrono::seconds(60));
      boost::beast::http::async_read(
          stream, buffer, request,
          [self = shared_from_this()](boost::beast::error_code error, std::size_t) {
            if (!error) self->write();
          });
    }

    void write() {
      response = {};
      response.version(11);
      response.result(boost::beast::http::status::ok);
      response.set(boost::beast::http::field::content_type, "application/octet-stream");
      response.keep_alive(true);
      response.body() = {static_body.data(), static_body.size()};
      response.prepare_payload();
      boost::beast::http::async_write(
          stream, response,
          [self = shared_from_this()](boost::beast::error_code error, std::size_t) {
            if (!error) self->read();
          });
    }

    boost::beast::tcp_stream stream;
    const std::vector<char>& static_body;
    boost::beast::flat_buffer buffer;
    boost::beast::http::request<boost::beast::http::string_body> request;
    boost::beast::http::response<Body> response;
  };

  void accept() {
    acceptor_.async_accept(boost::asio::make_strand(context_),
                           [this](boost::beast::error_code error, Tcp::socket socket) {
                             if (error) return;
                             socket.set_option(Tcp::no_delay(true));
                             std::make_shared<Session>(std::move(socket), body_)->read();
                             accept();
                           });
  }

  std::vector<char> body_;
  boost::asio::io_context context_;
  Tcp::acceptor acceptor_;
  std::vector<std::thread> threads_;
};

}  // namespace vitrove::bench
