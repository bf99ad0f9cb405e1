// HelperLink: our end of the socket to the helper of now.
//
// Frames are written by whoever has one; what does not fit at once is kept and written by the
// supervisor, so that a helper that does not read holds nobody up. Between two helpers it is
// closed, and frames go nowhere.
//
// A caller who waits for his answer may borrow the reading from the supervisor, who is then not
// woken by what comes: of three threads to wake for a call (the helper's, the supervisor, the
// caller) one is saved. send() and borrow() are thread-safe, what belongs to a Loan is the
// borrower's, and the rest the supervisor's.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/unique_fd.h"
#include "stores/mooncake/wire.h"

namespace vitrove::mooncake {

class HelperLink {
 public:
  // Throws Error{unavailable} when there is no descriptor for the wake-up call.
  HelperLink();

  // The socket stays the caller's, who closes the link first. Closing calls the reading back.
  void open(int socket);
  void close();

  // Nothing is sent when the link is closed. `fd` goes along when it is not -1; it must stay open
  // until the helper has answered.
  void send(wire::Type type, std::uint64_t call, const wire::Payload& payload, int fd = -1);
  void wake();

  // Waits until the helper says something on the socket or through `words`, there is room to write,
  // somebody wakes it, or time is up.
  struct Events {
    bool socket = false;
    bool words = false;
  };
  Events poll(int words, int timeout_ms);

  struct Frame {
    wire::Header header;
    wire::Payload payload;
  };
  enum class Read : std::uint8_t { frame, nothing, closed, nonsense };
  Read read(Frame& frame);

  // Nobody borrows the reading while the supervisor has the turn, for as long as he deals with what
  // he has read. Empty when it is borrowed.
  class Turn {
   public:
    explicit Turn(HelperLink* link) : link_(link) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return link_ != nullptr; }

   private:
    HelperLink* const link_;
  };
  Turn take_turn();

  class Loan {
   public:
    explicit Loan(HelperLink* link) : link_(link) {}
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    explicit operator bool() const { return link_ != nullptr; }

    // Waits; `nothing` when the reading is called back.
    Read wait_for(Frame& frame);
    // Of what has come already.
    Read read_on(Frame& frame);
    // A frame that is not the borrower's business; the last one he reads.
    void leave(Frame frame);

   private:
    HelperLink* const link_;
  };
  // Empty when somebody reads, or the link is closed.
  Loan borrow();

 private:
  struct Waiting {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;
    int fd = -1;
  };
  // False when the socket takes no more now.
  bool write(Waiting& frame) const;
  void write_waiting();
  void listen(int operation);  // under the lock: for what the supervisor waits
  std::uint32_t heard_on_socket();
  Read read_from(int socket, Frame& frame);

  enum class Reader : std::uint8_t { nobody, supervisor, borrower };

  UniqueFd wake_;
  UniqueFd recall_;  // what a borrower hears
  UniqueFd gate_;    // an epoll of the socket: readable when the supervisor has to do with it
  std::mutex mutex_;
  std::condition_variable returned_;
  int socket_ = -1;
  Reader reader_ = Reader::nobody;
  int lent_socket_ = -1;       // of the borrower
  std::optional<Frame> left_;  // by a borrower, for the supervisor
  bool look_ = false;          // something is there to be read, though it has left the socket
  std::vector<Waiting> waiting_;
  std::vector<std::byte> received_;  // of the reader
  std::size_t filled_ = 0;
};

}  // namespace vitrove::mooncake
