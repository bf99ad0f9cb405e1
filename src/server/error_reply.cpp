#include "server/error_reply.h"

#include <exception>
#include <new>

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace vitrove {
namespace {

// What we would wait ourselves before trying again.
constexpr const char* retry_after_seconds = "1";

}  // namespace

HttpResponse error_reply(const Error& error, const std::string& req_id) {
  return error_reply(http_status(error.code()), to_string(error.code()), error.what(), req_id,
                     error.item());
}

HttpResponse error_reply(int status, std::string_view code, std::string_view message,
                         const std::string& req_id, int item) {
  using nlohmann::json;
  const json body = {{"error",
                      {{"code", code},
                       {"message", message},
                       {"req_id", req_id},
                       {"item", item < 0 ? json(nullptr) : json(item)}}}};
  HttpResponse response;
  response.status = status;
  // Messages may quote the client's words, which need not be UTF-8.
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  response.req_id = req_id;
  if (status == 429 || status == 503) {
    response.headers.emplace_back("Retry-After", retry_after_seconds);
  }
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::unavailable, "out of memory");
  } catch (const std::exception& error) {
    return Error(ErrorCode::internal, "internal error", error.what());
  } catch (...) {
    return Error(ErrorCode::internal, "internal error");
  }
}

void log_error(const Error& error, const std::string& req_id) {
  const auto level =
      error.code() == ErrorCode::internal ? spdlog::level::warn : spdlog::level::debug;
  logger()->log(level, "req_id={} {}: {}{}{}", req_id, to_string(error.code()), error.what(),
                error.detail().empty() ? "" : " | ", error.detail());
}

}  // namespace vitrove
