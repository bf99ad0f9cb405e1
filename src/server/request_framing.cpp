#include "server/request_framing.h"

#include <boost/beast/core/string.hpp>

#include "server/error_reply.h"

namespace vitrove {
namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;

}  // namespace

std::optional<HttpResponse> refuse_framing(const http::request_header<>& head,
                                           const std::string& request_id) {
  const auto expect = head[http::field::expect];
  const auto codings = head.count(http::field::transfer_encoding);
  const bool is_chunked = codings == 1 && head.version() >= 11 &&
                          iequals(head[http::field::transfer_encoding], "chunked");
  std::optional<HttpResponse> refusal;
  if (codings > 0 && !is_chunked) {
    refusal = error_reply(400, "invalid_argument", "only the chunked transfer coding is known",
                          request_id);
  } else if (head.version() >= 11 && head.count(http::field::host) != 1) {
    refusal = error_reply(400, "invalid_argument", "the request needs one Host field", request_id);
  } else if (!expect.empty() && !iequals(expect, "100-continue")) {
    refusal = error_reply(417, "invalid_argument", "only 100-continue can be expected", request_id);
  }
  if (refusal) refusal->close = true;
  return refusal;
}

}  // namespace vitrove
