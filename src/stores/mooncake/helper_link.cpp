#include "stores/mooncake/helper_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/environment.h"
#include "vitrove/error.h"

namespace vitrove::mooncake {
namespace {

constexpr std::size_t read_bytes = 64 * 1024;

void add_one(const UniqueFd& event) {
  const std::uint64_t one = 1;
  // A full counter wakes as well.
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof one);
}

void take_all(const UniqueFd& event) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t read = ::read(event.get(), &count, sizeof count);
}

// A descriptor rides on the first byte of its frame.
ssize_t send_some(int socket, std::span<const std::byte> bytes, int fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace

HelperLink::HelperLink()
    : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      recall_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      gate_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!wake_ || !recall_ || !gate_) {
    throw Error(ErrorCode::unavailable, "mooncake store: no descriptor for its helper",
                errno_text(errno));
  }
}

void HelperLink::open(int socket) {
  std::lock_guard lock(mutex_);
  socket_ = socket;
  waiting_.clear();
  received_.clear();
  filled_ = 0;
  listen(EPOLL_CTL_ADD);
}

void HelperLink::close() {
  std::unique_lock lock(mutex_);
  if (socket_ >= 0) listen(EPOLL_CTL_DEL);
  socket_ = -1;
  waiting_.clear();
  if (reader_ == Reader::borrower) {
    add_one(recall_);
    returned_.wait(lock, [this] { return reader_ != Reader::borrower; });
    take_all(recall_);
  }
  left_.reset();
  look_ = false;
}

void HelperLink::listen(int operation) {
  epoll_event event{};
  event.events = (reader_ == Reader::borrower ? 0U : EPOLLIN) | (waiting_.empty() ? 0U : EPOLLOUT);
  ::epoll_ctl(gate_.get(), operation, socket_, &event);
}

void HelperLink::send(wire::Type type, std::uint64_t call, const wire::Payload& payload, int fd) {
  const auto header = wire::encode({type, call, static_cast<std::uint32_t>(payload.size())});
  Waiting frame;
  frame.bytes.reserve(header.size() + payload.size());
  frame.bytes.assign(header.begin(), header.end());
  frame.bytes.insert(frame.bytes.end(), payload.begin(), payload.end());
  frame.fd = fd;
  {
    std::lock_guard lock(mutex_);
    if (socket_ < 0) return;
    waiting_.reserve(waiting_.size() + 1);  // fails, if at all, before anything is sent
    if (waiting_.empty() && write(frame)) return;
    waiting_.push_back(std::move(frame));
    listen(EPOLL_CTL_MOD);
  }
  wake();
}

void HelperLink::wake() { add_one(wake_); }

bool HelperLink::write(Waiting& frame) const {
  while (frame.sent < frame.bytes.size()) {
    const ssize_t sent = send_some(socket_, std::span(frame.bytes).subspan(frame.sent), frame.fd);
    if (sent < 0 && errno == EINTR) continue;
    // Whatever else is wrong with the socket shows when it is read.
    if (sent < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    frame.fd = -1;
    frame.sent += static_cast<std::size_t>(sent);
  }
  return true;
}

void HelperLink::write_waiting() {
  std::lock_guard lock(mutex_);
  std::size_t done = 0;
  while (done < waiting_.size() && write(waiting_[done])) ++done;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
  if (socket_ >= 0) listen(EPOLL_CTL_MOD);
}

HelperLink::Events HelperLink::poll(int words, int timeout_ms) {
  std::array<pollfd, 3> wanted{
      {{gate_.get(), POLLIN, 0}, {words, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  if (::poll(wanted.data(), wanted.size(), timeout_ms) <= 0) return {};
  if (wanted[2].revents != 0) take_all(wake_);
  const std::uint32_t heard = wanted[0].revents != 0 ? heard_on_socket() : 0;
  if ((heard & EPOLLOUT) != 0) write_waiting();
  Events events;
  events.words = (wanted[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
  std::unique_lock lock(mutex_);
  if ((heard & (EPOLLHUP | EPOLLERR)) != 0) {  // the borrower hears it as well, and comes back
    returned_.wait(lock, [this] { return reader_ != Reader::borrower; });
  }
  events.socket = std::exchange(look_, false) || (heard & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
  return events;
}

std::uint32_t HelperLink::heard_on_socket() {
  epoll_event event{};
  return ::epoll_wait(gate_.get(), &event, 1, 0) == 1 ? event.events : 0U;
}

HelperLink::Turn HelperLink::take_turn() {
  std::lock_guard lock(mutex_);
  if (reader_ != Reader::nobody) return Turn(nullptr);
  reader_ = Reader::supervisor;
  return Turn(this);
}

HelperLink::Turn::~Turn() {
  if (link_ == nullptr) return;
  std::lock_guard lock(link_->mutex_);
  link_->reader_ = Reader::nobody;
}

HelperLink::Read HelperLink::read(Frame& frame) {
  {
    std::lock_guard lock(mutex_);
    if (left_) {
      frame = *std::exchange(left_, std::nullopt);
      return Read::frame;
    }
  }
  return read_from(socket_, frame);
}

HelperLink::Loan HelperLink::borrow() {
  std::lock_guard lock(mutex_);
  if (socket_ < 0 || reader_ != Reader::nobody || left_) return Loan(nullptr);
  reader_ = Reader::borrower;
  lent_socket_ = socket_;
  listen(EPOLL_CTL_MOD);
  return Loan(this);
}

HelperLink::Loan::~Loan() {
  if (link_ == nullptr) return;
  std::lock_guard lock(link_->mutex_);
  link_->reader_ = Reader::nobody;
  link_->returned_.notify_all();
  if (link_->socket_ < 0) return;
  link_->listen(EPOLL_CTL_MOD);
  if (!link_->left_ && link_->filled_ == 0) return;
  link_->look_ = true;
  link_->wake();
}

HelperLink::Read HelperLink::Loan::wait_for(Frame& frame) {
  for (;;) {
    const Read read = read_on(frame);
    if (read != Read::nothing) return read;
    std::array<pollfd, 2> wanted{
        {{link_->lent_socket_, POLLIN, 0}, {link_->recall_.get(), POLLIN, 0}}};
    if (::poll(wanted.data(), wanted.size(), -1) > 0 && wanted[1].revents != 0) {
      return Read::nothing;
    }
  }
}

HelperLink::Read HelperLink::Loan::read_on(Frame& frame) {
  return link_->read_from(link_->lent_socket_, frame);
}

void HelperLink::Loan::leave(Frame frame) {
  std::lock_guard lock(link_->mutex_);
  if (link_->socket_ >= 0) link_->left_ = std::move(frame);
}

HelperLink::Read HelperLink::read_from(int socket, Frame& frame) {
  const auto missing = [this](std::size_t wanted) { return filled_ < wanted; };
  for (;;) {
    if (!missing(wire::header_bytes)) {
      const auto header = wire::decode_header(std::span(received_).first<wire::header_bytes>());
      if (!header) return Read::nonsense;
      const std::size_t whole = wire::header_bytes + header->payload_bytes;
      if (!missing(whole)) {
        frame.header = *header;
        const auto begin = received_.begin();
        frame.payload.assign(begin + wire::header_bytes,
                             begin + static_cast<std::ptrdiff_t>(whole));
        received_.erase(begin, begin + static_cast<std::ptrdiff_t>(whole));
        filled_ -= whole;
        return Read::frame;
      }
    }
    if (received_.size() < filled_ + read_bytes) received_.resize(filled_ + read_bytes);
    const ssize_t got = ::recv(socket, received_.data() + filled_, read_bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Read::nothing;
    if (got <= 0) return Read::closed;
    filled_ += static_cast<std::size_t>(got);
  }
}

}  // namespace vitrove::mooncake
