// POST /flush, POST /reload and GET /health_generate: routes that act on the whole server.
#pragma once

#include <vector>

#include "server/encode_service.h"
#include "server/http_message.h"
#include "server/router.h"

namespace vitrove {

class AdminRoutes {
 public:
  explicit AdminRoutes(EncodeService& service) : service_(service) {}

  std::vector<Route> routes();

 private:
  // The pool's at once. That of a store, which may hang, in a lane of its own.
  Answer flush(HttpRequest& request);
  HttpResponse flush_now(HttpRequest& request);
  HttpResponse reload(HttpRequest& request);
  HttpResponse health_generate(HttpRequest& request);

  EncodeService& service_;
};

}  // namespace vitrove
