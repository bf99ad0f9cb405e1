// The head of an HTTP/1.1 response, from its status line to the empty line.
#pragma once

#include <string>

#include "server/http_message.h"

namespace vitrove {

std::string response_head(const HttpResponse& response);

}  // namespace vitrove
