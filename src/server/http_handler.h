// HttpHandler: what an HTTP connection asks of the server. Called on I/O threads: no method blocks.
#pragma once

#include <cstdint>
#include <optional>

#include "server/http_message.h"

namespace vitrove {

// What was decided from the head of a request alone.
struct Admission {
  std::optional<HttpResponse> refusal;
  std::uint64_t body_limit = 0;
  // The work is worth stopping when the client goes. Where it is not, a client that has shut down
  // its sending side still gets its answer.
  bool ends_with_client = false;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // After the head: route, access, draining, queue. Sets the request's deadline.
  virtual Admission admit(HttpRequest& request) = 0;
  // After the body: answers now or later, exactly once, from any thread.
  virtual void handle(HttpRequest request, Responder respond) = 0;
  // Right before the first byte of any reply goes out, those of the connection itself included.
  virtual void on_reply(const HttpRequest& request, const HttpResponse& response) = 0;
};

}  // namespace vitrove
