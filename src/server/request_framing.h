// What Beast lets pass in a request's head, and we do not.
#pragma once

#include <optional>
#include <string>

#include <boost/beast/http/message.hpp>

#include "server/http_message.h"

namespace vitrove {

// A refusal that ends the connection, or nothing. Of any other transfer coding than "chunked" alone
// nobody knows where the body ends: a proxy before us may see other requests in it than we do.
std::optional<HttpResponse> refuse_framing(const boost::beast::http::request_header<>& head,
                                           const std::string& request_id);

}  // namespace vitrove
