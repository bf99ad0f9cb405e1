// Errors as replies: {"error": {"code", "message", "req_id", "item"}}, all four always there.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "server/http_message.h"
#include "vitrove/error.h"

namespace vitrove {

HttpResponse error_reply(const Error& error, const std::string& req_id);

// For what HTTP itself has to refuse (404, 405, 413, 431 ...).
HttpResponse error_reply(int status, std::string_view code, std::string_view message,
                         const std::string& req_id, int item = -1);

// Runs `handler`; whatever it throws becomes a reply, and what clients must not see a log line.
// What the handler returns need only be makeable from a reply.
template <typename Handler>
auto reply_or_error(const std::string& req_id, Handler handler) -> std::invoke_result_t<Handler>;

// The Error in flight, of whatever kind; call inside a catch block.
Error current_error();
void log_error(const Error& error, const std::string& req_id);

template <typename Handler>
auto reply_or_error(const std::string& req_id, Handler handler) -> std::invoke_result_t<Handler> {
  try {
    return handler();
  } catch (...) {
    const Error error = current_error();
    log_error(error, req_id);
    return error_reply(error, req_id);
  }
}

}  // namespace vitrove
