// Errors as replies: {"error": {"code", "message", "req_id", "item"}}, all four always there.
#pragma once

#include <string>
#include <string_view>

#include "server/http_message.h"
#include "vitrove/error.h"

namespace vitrove {

HttpResponse error_reply(const Error& error, const std::string& req_id);

// For what HTTP itself has to refuse (404, 405, 413, 431 ...).
HttpResponse error_reply(int status, std::string_view code, std::string_view message,
                         const std::string& req_id, int item = -1);

// Runs `handler`; whatever it throws becomes a reply, and what clients must not see a log line.
template <typename Handler>
HttpResponse reply_or_error(const std::string& req_id, Handler handler);

// The Error in flight, of whatever kind; call inside a catch block.
Error current_error();
void log_error(const Error& error, const std::string& req_id);

template <typename Handler>
HttpResponse reply_or_error(const std::string& req_id, Handler handler) {
  try {
    return handler();
  } catch (...) {
    const Error error = current_error();
    log_error(error, req_id);
    return error_reply(error, req_id);
  }
}

}  // namespace vitrove
