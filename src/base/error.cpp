#include "vitrove/error.h"

namespace vitrove {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::unauthorized:
      return "unauthorized";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::too_large:
      return "too_large";
    case ErrorCode::unsupported_format:
      return "unsupported_format";
    case ErrorCode::media_fetch_failed:
      return "media_fetch_failed";
    case ErrorCode::queue_full:
      return "queue_full";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "internal";
}

int http_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::unauthorized:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::unsupported_format:
      return 415;
    case ErrorCode::media_fetch_failed:
      return 424;
    case ErrorCode::queue_full:
      return 429;
    case ErrorCode::cancelled:
      return 499;  // nobody is left to read it; access logs know this number
    case ErrorCode::internal:
      return 500;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::deadline_exceeded:
      return 504;
  }
  return 500;
}

}  // namespace vitrove
