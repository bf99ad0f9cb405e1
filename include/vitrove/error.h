// One error type for everything a caller of the library can get wrong or meet.
//
// `Error` is thrown at API boundaries (parsing, decoding, configuration, encoding). Stores never
// throw it: they answer a StoreResult per key (embedding_store.h), because a store fault is a miss
// of one item and not an error of a request.
//
// what()    is safe for clients: short, no path, address, host, or secret (field case B87).
// detail()  is for logs only and may hold any of these except secrets.
// item()    is the 0-based index of the item at fault within its request, or -1.
//
// No exception leaves a worker thread: what work throws is caught around it and becomes an Error
// kept with the work item, or a log line where nobody waits for one.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace vitrove {

enum class ErrorCode {
  invalid_argument,    // 400: malformed or contradictory input
  unauthorized,        // 401
  forbidden,           // 403
  not_found,           // 404
  too_large,           // 413: a limit named in the message was exceeded
  unsupported_format,  // 415: media of a kind we do not decode
  media_fetch_failed,  // 424: the media's origin failed
  queue_full,          // 429: try again later
  internal,            // 500: a fault of ours, or of the encoder
  unavailable,         // 503: draining, or out of memory
  deadline_exceeded,   // 504
  cancelled,           // the caller went away; never seen by a client
};

// The JSON spelling ("invalid_argument", ...).
std::string_view to_string(ErrorCode code);

// The HTTP status of design section 8.
int http_status(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string detail = {}, int item = -1)
      : std::runtime_error(message), code_(code), detail_(std::move(detail)), item_(item) {}

  ErrorCode code() const { return code_; }
  const std::string& detail() const { return detail_; }
  int item() const { return item_; }

  // A copy that names the item at fault.
  Error for_item(int index) const { return Error(code_, what(), detail_, index); }

 private:
  ErrorCode code_;
  std::string detail_;
  int item_;
};

}  // namespace vitrove
