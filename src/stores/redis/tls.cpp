#include "stores/redis/tls.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "stores/redis/tls_bio.h"
#include "vitrove/error.h"

namespace vitrove::redis {
namespace {

using SslPtr = std::unique_ptr<SSL, decltype(&::SSL_free)>;

// The first reason of this thread's error queue, which is emptied.
std::string tls_reason() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  const char* const reason = ::ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

[[noreturn]] void refuse(const std::string& what, const std::string& path) {
  throw Error(ErrorCode::invalid_argument, "redis store: " + what + ": " + tls_reason(), path);
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

class TlsStream final : public Stream {
 public:
  TlsStream(UniqueFd socket, SslPtr ssl)
      : socket_(std::move(socket)), number_(socket_.get()), ssl_(std::move(ssl)) {}

  // Gives the socket to OpenSSL; false when memory is short.
  bool attach() {
    BIO* const bio = make_socket_bio(&number_);
    if (bio == nullptr) return false;
    ::SSL_set_bio(ssl_.get(), bio, bio);  // which owns it from here
    return true;
  }

  IoResult read(std::span<const iovec> pieces) override {
    ::ERR_clear_error();
    const int wanted = clamp(pieces.front().iov_len);
    const int moved = ::SSL_read(ssl_.get(), pieces.front().iov_base, wanted);
    if (moved > 0) return {IoResult::Kind::moved, static_cast<std::size_t>(moved)};
    return failure(moved);
  }

  // Small pieces become one record; a large one goes as it is.
  IoResult write(std::span<const iovec> pieces) override {
    ::ERR_clear_error();
    const bool is_large = pieces.front().iov_len >= record_.size();
    const int wanted = is_large ? clamp(pieces.front().iov_len) : gather(pieces);
    const void* const bytes = is_large ? pieces.front().iov_base : record_.data();
    const int moved = ::SSL_write(ssl_.get(), bytes, wanted);
    if (moved > 0) return {IoResult::Kind::moved, static_cast<std::size_t>(moved)};
    return failure(moved);
  }

  int fd() const override { return number_; }
  bool ends_with_short_read() const override { return false; }

  // One step of the handshake; `moved` when it is complete.
  IoResult connect() {
    ::ERR_clear_error();
    const int done = ::SSL_connect(ssl_.get());
    if (done == 1) return {IoResult::Kind::moved};
    return failure(done);
  }

  SSL* ssl() const { return ssl_.get(); }

 private:
  static int clamp(std::size_t bytes) {
    return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
  }

  int gather(std::span<const iovec> pieces) {
    std::size_t used = 0;
    for (const iovec& piece : pieces) {
      const std::size_t count = std::min(piece.iov_len, record_.size() - used);
      std::memcpy(record_.data() + used, piece.iov_base, count);
      used += count;
      if (used == record_.size()) break;
    }
    return static_cast<int>(used);
  }

  IoResult failure(int returned) {
    const int saved_errno = errno;
    switch (::SSL_get_error(ssl_.get(), returned)) {
      case SSL_ERROR_WANT_READ:
        return {IoResult::Kind::wants_read};
      case SSL_ERROR_WANT_WRITE:
        return {IoResult::Kind::wants_write};
      case SSL_ERROR_ZERO_RETURN:
        return {IoResult::Kind::ended};
      case SSL_ERROR_SYSCALL:
        return {IoResult::Kind::failed, 0, saved_errno == 0 ? ECONNRESET : saved_errno};
      default:
        return {IoResult::Kind::failed, 0, EPROTO};
    }
  }

  const UniqueFd socket_;
  const int number_;  // of the socket
  const SslPtr ssl_;
  std::array<std::byte, 16 * 1024> record_;
};

IoResult finish_handshake(TlsStream& stream, Clock::time_point deadline, const Waiter& waiter,
                          Fault& fault) {
  while (true) {
    const IoResult step = stream.connect();
    if (!step.blocked()) return step;
    const short events = step.kind == IoResult::Kind::wants_read ? POLLIN : POLLOUT;
    const pollfd socket{stream.fd(), events, 0};
    const auto woken = waiter.wait({&socket, 1}, deadline);
    if (woken == Waiter::Woken::ready) continue;
    const bool left = woken == Waiter::Woken::cancelled;
    fault = {left ? StoreStatus::cancelled : StoreStatus::timeout, 0,
             "the TLS handshake did not end in time"};
    return step;
  }
}

}  // namespace

TlsContext::TlsContext(const RedisStoreOptions& options)
    : context_(::SSL_CTX_new(::TLS_client_method()), &::SSL_CTX_free),
      server_name_(options.tls_name),
      verify_(options.tls_verify) {
  SSL_CTX* const context = context_.get();
  if (context == nullptr) refuse("TLS cannot be used", {});
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_verify(context, verify_ ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (options.tls_ca.empty()) {
    ::SSL_CTX_set_default_verify_paths(context);
  } else if (::SSL_CTX_load_verify_locations(context, options.tls_ca.c_str(), nullptr) != 1) {
    refuse("the file of tls_ca cannot be used", options.tls_ca);
  }
  if (options.tls_cert.empty()) return;
  if (::SSL_CTX_use_certificate_chain_file(context, options.tls_cert.c_str()) != 1) {
    refuse("the file of tls_cert cannot be used", options.tls_cert);
  }
  const std::string& key = options.tls_key.empty() ? options.tls_cert : options.tls_key;
  if (::SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1) {
    refuse("the file of tls_key cannot be used with the certificate", key);
  }
}

std::unique_ptr<Stream> TlsContext::handshake(UniqueFd socket, const std::string& host,
                                              Clock::time_point deadline,
                                              const std::stop_token& cancel, Fault& fault) const {
  const std::string& name = server_name_.empty() ? host : server_name_;
  SslPtr ssl(::SSL_new(context_.get()), &::SSL_free);
  if (!ssl) {
    fault = {StoreStatus::unavailable, ENOMEM, "TLS: " + tls_reason()};
    return nullptr;
  }
  const bool by_address = is_ip_address(name);
  if (!by_address) {
    ::SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(name.c_str()));
  }
  if (verify_) {
    X509_VERIFY_PARAM* const expected = ::SSL_get0_param(ssl.get());
    const int set = by_address ? ::X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str())
                               : ::X509_VERIFY_PARAM_set1_host(expected, name.c_str(), 0);
    if (set != 1) {
      fault = {StoreStatus::denied, 0, "TLS: not a name that a certificate can bear"};
      return nullptr;
    }
  }
  auto stream = std::make_unique<TlsStream>(std::move(socket), std::move(ssl));
  if (!stream->attach()) {
    fault = {StoreStatus::unavailable, ENOMEM, "TLS: " + tls_reason()};
    return nullptr;
  }
  const IoResult end = finish_handshake(*stream, deadline, Waiter(cancel), fault);
  if (end.moved()) return stream;
  if (fault) return nullptr;
  const long verdict = ::SSL_get_verify_result(stream->ssl());
  if (verify_ && verdict != X509_V_OK) {
    fault = {StoreStatus::denied, 0,
             std::string("TLS: certificate refused: ") + ::X509_verify_cert_error_string(verdict)};
  } else {
    fault = {StoreStatus::unavailable, end.error_number, "TLS: handshake failed: " + tls_reason()};
  }
  return nullptr;
}

}  // namespace vitrove::redis
