#include "server/admin_routes.h"

#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "server/error_reply.h"
#include "server/flush_reply.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

using nlohmann::json;

// Listing a large store and hashing a model's weights take their time.
constexpr std::chrono::minutes admin_patience{30};

FlushScope parse_scope(const std::string& text) {
  if (text == "local") return FlushScope::local;
  if (text == "store") return FlushScope::store;
  if (text == "all") return FlushScope::all;
  throw Error(ErrorCode::invalid_argument, "scope must be local, store or all");
}

std::string query_or(const HttpRequest& request, const char* name, const char* fallback) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? fallback : found->second;
}

// Without a model, stores lose what this server's model wrote; the pool alone loses everything.
std::optional<Digest256> parse_model(const std::string& text, FlushScope scope,
                                     const Digest256& own) {
  if (text == "*") return std::nullopt;
  if (text.empty()) return scope == FlushScope::local ? std::nullopt : std::optional(own);
  const auto model = parse_digest(text);
  if (!model) {
    throw Error(ErrorCode::invalid_argument, "model must be a fingerprint of 64 hex digits or *");
  }
  return model;
}

void refuse_unknown_query(const HttpRequest& request) {
  for (const auto& [name, value] : request.query) {
    if (name == "scope" || name == "model") continue;
    throw Error(ErrorCode::invalid_argument, "the parameters are scope and model");
  }
}

std::string parse_reload_body(const std::string& text) {
  const json body = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_good = body.is_object() && body.size() == 1 && body.contains("encoder") &&
                       body["encoder"].is_string() && !body["encoder"].get<std::string>().empty();
  if (!is_good) {
    throw Error(ErrorCode::invalid_argument, "the body must be {\"encoder\": \"DIR or stub:...\"}");
  }
  return body["encoder"].get<std::string>();
}

HttpResponse json_reply(const json& body, const std::string& req_id) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  response.req_id = req_id;
  return response;
}

}  // namespace

std::vector<Route> AdminRoutes::routes() {
  Route flush_route{"POST",        "/flush",
                    "/flush",      Lane::admin,
                    Access::admin, [this](HttpRequest& request) { return flush(request); }};
  flush_route.patience = admin_patience;
  Route reload_route{"POST",        "/reload",
                     "/reload",     Lane::admin,
                     Access::admin, [this](HttpRequest& request) { return reload(request); }};
  reload_route.patience = admin_patience;
  Route probe_route{"GET",
                    "/health_generate",
                    "/health_generate",
                    Lane::admin,
                    Access::caller,
                    [this](HttpRequest& request) { return health_generate(request); }};
  probe_route.is_probe = true;
  return {std::move(flush_route), std::move(reload_route), std::move(probe_route)};
}

Answer AdminRoutes::flush(HttpRequest& request) {
  if (query_or(request, "scope", "local") == "local") return flush_now(request);
  return Later{Lane::far, [this, &request] { return flush_now(request); }};
}

HttpResponse AdminRoutes::flush_now(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    refuse_unknown_query(request);
    const std::string scope_text = query_or(request, "scope", "local");
    const FlushScope scope = parse_scope(scope_text);
    const auto model =
        parse_model(query_or(request, "model", ""), scope, service_.encoder_info().fingerprint);
    const FlushReport report = service_.controller().flush(
        scope, model, {request.deadline, request.cancel, request.request_id});
    logger()->info("req_id={} flushed scope={}: {} removed", request.request_id, scope_text,
                   total_removed(report));
    if (!is_complete(report)) {
      logger()->warn(
          "req_id={} the flush ran out of time or met with faults: some may be left in {}",
          request.request_id, names_of_incomplete(report));
    }
    return json_reply({{"scope", scope_text},
                       {"model", model ? to_hex(*model) : "*"},
                       {"complete", is_complete(report)},
                       {"tiers", tiers_json(report)}},
                      request.request_id);
  });
}

HttpResponse AdminRoutes::reload(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    const EncoderInfo info = service_.reload(parse_reload_body(request.body));
    logger()->info("req_id={} reloaded: {} {}", request.request_id, info.name,
                   to_hex(info.fingerprint));
    return json_reply({{"name", info.name},
                       {"revision", info.revision},
                       {"fingerprint", to_hex(info.fingerprint)},
                       {"dim", info.dim},
                       {"dtype", to_string(info.dtype)}},
                      request.request_id);
  });
}

HttpResponse AdminRoutes::health_generate(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    service_.encode_probe({request.deadline, request.cancel, request.request_id});
    return json_reply({{"status", "ok"}}, request.request_id);
  });
}

}  // namespace vitrove
