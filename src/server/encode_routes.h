// POST /encode, and GET and DELETE of /embeddings/{key}.
#pragma once

#include <optional>
#include <vector>

#include "server/embedding_reply.h"
#include "server/encode_body.h"
#include "server/encode_service.h"
#include "server/http_message.h"
#include "server/reply_budget.h"
#include "server/router.h"
#include "server/server_config.h"

namespace vitrove {

class EncodeRoutes {
 public:
  // All outlive the routes. `has_tenants`: routes by key show a caller his own tenant's only.
  EncodeRoutes(const ServerConfig& config, bool has_tenants, EncodeService& service,
               ReplyBudget& budget);

  std::vector<Route> routes();

 private:
  Answer encode(HttpRequest& request);
  HttpResponse encode_work(const ReplyFrame& frame, ReturnForm form, EncodeRequest work);
  std::optional<HttpResponse> encode_from_pool(HttpRequest& request);
  std::optional<HttpResponse> hit_reply(const ReplyFrame& frame, ReturnForm form, EncodedItem item);
  HttpResponse get(HttpRequest& request);
  std::optional<HttpResponse> get_from_pool(HttpRequest& request);
  HttpResponse remove(HttpRequest& request);

  std::optional<Digest256> visible_tenant(const HttpRequest& request) const;

  const ServerConfig& config_;
  const bool has_tenants_;
  EncodeService& service_;
  ReplyBudget& budget_;
};

}  // namespace vitrove
