#include "stores/redis/tls_bio.h"

#include <cerrno>
#include <memory>

#include <sys/socket.h>

namespace vitrove::redis {
namespace {

using MethodPtr = std::unique_ptr<BIO_METHOD, decltype(&::BIO_meth_free)>;

int socket_of(BIO* bio) { return *static_cast<const int*>(::BIO_get_data(bio)); }

int send_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t moved =
      ::send(socket_of(bio), bytes, static_cast<std::size_t>(count), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(moved);
}

int receive_bytes(BIO* bio, char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t moved =
      ::recv(socket_of(bio), bytes, static_cast<std::size_t>(count), MSG_DONTWAIT);
  if (moved < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(moved);
}

long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

MethodPtr make_method() {
  MethodPtr method(::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "vitrove socket"),
                   &::BIO_meth_free);
  if (!method) return method;
  ::BIO_meth_set_write(method.get(), send_bytes);
  ::BIO_meth_set_read(method.get(), receive_bytes);
  ::BIO_meth_set_ctrl(method.get(), control);
  return method;
}

}  // namespace

BIO* make_socket_bio(const int* socket) {
  static const MethodPtr method = make_method();
  BIO* const bio = method ? ::BIO_new(method.get()) : nullptr;
  if (bio == nullptr) return nullptr;
  ::BIO_set_data(bio, const_cast<int*>(socket));  // only read
  ::BIO_set_init(bio, 1);
  return bio;
}

}  // namespace vitrove::redis
