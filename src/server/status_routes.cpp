#include "server/status_routes.h"

#include <cmath>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/error_reply.h"
#include "server/introspection.h"
#include "server/status_page.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Ordered, since people read it too.
using json = nlohmann::ordered_json;

HttpResponse json_reply(const json& body, const HttpRequest& request, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  response.req_id = request.request_id;
  response.headers.emplace_back("Cache-Control", "no-store");
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

LookupStats all_lookups(const ControllerStats& stats) {
  LookupStats sum;
  for (const auto& counts : stats.lookups) sum += counts;
  return sum;
}

json lookups_json(const LookupStats& counts) {
  return {{"local", counts.local},
          {"joined", counts.joined},
          {"store", counts.store},
          {"miss", counts.miss}};
}

json pool_json(const ControllerStats& stats) {
  return {{"bytes", stats.pool_bytes},          {"used_bytes", stats.bytes_used},
          {"pinned_bytes", stats.bytes_pinned}, {"free_bytes", stats.bytes_free},
          {"entries", stats.entries_ready},     {"filling", stats.entries_filling}};
}

json encoder_json(const EncoderTotals& totals) {
  return {{"items", totals.items},
          {"batches", totals.batches},
          {"failures", totals.failures},
          {"seconds", static_cast<double>(totals.busy_us) / 1e6},
          {"queued", totals.queued},
          {"running_seconds", static_cast<double>(totals.running_since_us) / 1e6}};
}

json op_json(const StoreOpStats& op, bool with_reasons) {
  json out = {{"ok", op.ok},           {"absent", op.absent},       {"errors", op.faults},
              {"calls", op.calls},     {"seconds", op.seconds_sum}, {"bytes", op.bytes},
              {"pending", op.pending}, {"cancelled", op.cancelled}};
  if (!with_reasons) return out;
  json reasons = json::object();
  for (const auto& [reason, count] : op.reasons) reasons[reason] = count;
  out["reasons"] = std::move(reasons);
  return out;
}

json optional_json(const std::optional<std::uint64_t>& value) {
  return value ? json(*value) : json(nullptr);
}

// As the monitor last saw it: asking the store itself may take its time.
StoreSummary summary_of(const StoreStats& store, const std::vector<StoreSummary>& summaries) {
  for (const auto& summary : summaries) {
    if (summary.name == store.name) return summary;
  }
  return {store.name, store.breaker_open ? StoreState::down : StoreState::ready, {}};
}

// What the breakers know comes first: a store whose engine hangs may think well of itself.
std::string detail_of(const StoreStats& store, const StoreHealth& health) {
  if (!store.breaker_open && !store.put_breaker_open) return health.detail;
  std::string words = "paused, since its ";
  words += !store.put_breaker_open ? "reads" : !store.breaker_open ? "puts" : "reads and puts";
  words +=
      " fail or do not come back; tried again every few seconds. `vitrove doctor URL` says what is "
      "wrong. By itself: ";
  return words + (health.detail.empty() ? std::string(state_name(health.state)) : health.detail);
}

json store_json(const StoreStats& store, const StoreSummary& seen) {
  return {{"name", store.name},
          {"state", state_name(seen.state)},
          {"breaker_open", store.breaker_open},
          {"put_breaker_open", store.put_breaker_open},
          {"detail", detail_of(store, seen.health)},
          {"bytes", optional_json(seen.health.bytes)},
          {"capacity", optional_json(seen.health.capacity)},
          {"entries", optional_json(seen.health.entries)},
          {"get", op_json(store.get, true)},
          {"put", op_json(store.put, true)},
          {"exist", op_json(store.exist, true)},
          {"remove", op_json(store.remove, true)}};
}

// For everybody: no addresses, paths or reasons.
json public_store_json(const StoreStats& store, const StoreSummary& seen) {
  return {{"name", store.name},
          {"state", state_name(seen.state)},
          {"get", op_json(store.get, false)},
          {"put", op_json(store.put, false)}};
}

std::string_view phase_name(Phase phase) {
  return phase == Phase::serving ? std::string_view("serving") : std::string_view("draining");
}

HttpResponse not_ready(const char* why, const HttpRequest& request) {
  return error_reply(Error(ErrorCode::unavailable, why), request.request_id);
}

Route open_route(std::string_view path, Lane lane, bool is_probe,
                 std::function<HttpResponse(HttpRequest&)> handler) {
  Route route{"GET", path, path, lane, Access::open, std::move(handler)};
  route.is_probe = is_probe;
  route.is_served_draining = true;
  return route;
}

}  // namespace

StatusRoutes::StatusRoutes(const ServerConfig& config, const EncodeService& service,
                           const ServerMetrics& metrics, HealthMonitor& health,
                           const std::atomic<Phase>& phase, const WorkerPool& service_pool,
                           const WorkerPool& media_pool)
    : config_(config),
      service_(service),
      metrics_(metrics),
      health_(health),
      phase_(phase),
      service_pool_(service_pool),
      media_pool_(media_pool) {}

std::vector<Route> StatusRoutes::routes() {
  std::vector<Route> routes;
  Route health_route = open_route("/health", Lane::io, true, {});
  health_route.asynchronous = [this](HttpRequest request, Responder respond) {
    health_.ask([this, request = std::move(request), respond = std::move(respond)] {
      respond(reply_or_error(request.request_id, [&] { return health(request); }));
    });
  };
  routes.push_back(std::move(health_route));
  routes.push_back(open_route("/ready", Lane::io, true,
                              [this](HttpRequest& request) { return ready(request); }));
  routes.push_back(open_route("/metrics", Lane::control, true,
                              [this](HttpRequest& request) { return metrics(request); }));
  routes.push_back(open_route("/status.json", Lane::control, true,
                              [this](HttpRequest& request) { return status(request); }));
  routes.push_back(
      open_route("/", Lane::io, false, [this](HttpRequest& request) { return page(request); }));
  Route stats_route = open_route("/stats", Lane::control, false,
                                 [this](HttpRequest& request) { return stats(request); });
  stats_route.access = Access::admin;
  routes.push_back(std::move(stats_route));
  return routes;
}

double StatusRoutes::uptime_seconds() const {
  const std::chrono::duration<double> up = std::chrono::steady_clock::now() - started_;
  return std::round(up.count() * 1000) / 1000;
}

// Alive: whatever else is wrong, this answers 200.
HttpResponse StatusRoutes::health(const HttpRequest& request) {
  json stores = json::array();
  for (const auto& store : health_.stores()) {
    stores.push_back({{"name", store.name}, {"state", state_name(store.state)}});
  }
  return json_reply({{"status", health_.is_degraded() ? "degraded" : "ok"},
                     {"phase", phase_name(phase_)},
                     {"uptime_seconds", uptime_seconds()},
                     {"stores", std::move(stores)}},
                    request);
}

HttpResponse StatusRoutes::ready(HttpRequest& request) {
  if (phase_ != Phase::serving) {
    return not_ready("the server is draining", request);
  }
  const std::chrono::microseconds running(service_.encoder_totals().running_since_us);
  if (running > config_.stall_timeout) {
    return not_ready("the encoder has been busy with one batch for too long", request);
  }
  return json_reply({{"status", "ready"}}, request);
}

HttpResponse StatusRoutes::metrics(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    HttpResponse response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.text();
    response.req_id = request.request_id;
    return response;
  });
}

HttpResponse StatusRoutes::stats(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    const ControllerStats stats = service_.controller().stats();
    const EncoderInfo info = service_.encoder_info();
    json lookups = json::object();
    for (const auto modality : {Modality::image, Modality::video, Modality::audio}) {
      lookups[std::string(to_string(modality))] =
          lookups_json(stats.lookups[static_cast<std::size_t>(modality)]);
    }
    json rejected = json::object();
    for (const auto& [reason, count] : stats.rejected) rejected[reason] = count;
    json stores = json::array();
    const auto seen = health_.stores();
    for (const auto& store : stats.stores) {
      stores.push_back(store_json(store, summary_of(store, seen)));
    }
    json contents = contents_json(service_.controller(), health_.history());
    return json_reply(
        {{"phase", phase_name(phase_)},
         {"uptime_seconds", uptime_seconds()},
         {"model",
          {{"name", info.name},
           {"revision", info.revision},
           {"fingerprint", to_hex(info.fingerprint)},
           {"dim", info.dim},
           {"dtype", to_string(info.dtype)}}},
         {"lookups", std::move(lookups)},
         {"hit_ratio", hit_ratios_json(service_.controller(), health_.history())},
         {"saved_seconds", static_cast<double>(stats.saved_us) / 1e6},
         {"encoder", encoder_json(service_.encoder_totals())},
         {"pool", pool_json(stats)},
         {"evictions",
          {{"space", stats.evictions_space},
           {"flush", stats.evictions_flush},
           {"removed", stats.evictions_removed}}},
         {"uncached",
          {{"too_large", stats.uncached_too_large}, {"no_space", stats.uncached_no_space}}},
         {"rejected_values", std::move(rejected)},
         {"puts_dropped", stats.puts_dropped},
         {"puts_skipped", stats.puts_skipped},
         {"claims",
          {{"won", stats.claims.won},
           {"waited", stats.claims.waited},
           {"expired", stats.claims.expired},
           {"failed", stats.claims.failed},
           {"lost", stats.claims.lost},
           {"unreleased", stats.claims.unreleased}}},
         {"requests",
          {{"running", service_pool_.running() + media_pool_.running()},
           {"waiting", service_pool_.waiting() + media_pool_.waiting()}}},
         {"stores", std::move(stores)},
         {"models", std::move(contents["models"])},
         {"top_keys", std::move(contents["top_keys"])}},
        request);
  });
}

HttpResponse StatusRoutes::status(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    const ControllerStats stats = service_.controller().stats();
    const auto seen = health_.stores();
    json stores = json::array();
    for (const auto& store : stats.stores) {
      stores.push_back(public_store_json(store, summary_of(store, seen)));
    }
    return json_reply({{"phase", phase_name(phase_)},
                       {"uptime_seconds", uptime_seconds()},
                       {"lookups", lookups_json(all_lookups(stats))},
                       {"hit_ratio", hit_ratios_json(service_.controller(), health_.history())},
                       {"saved_seconds", static_cast<double>(stats.saved_us) / 1e6},
                       {"encoder", encoder_json(service_.encoder_totals())},
                       {"pool", pool_json(stats)},
                       {"requests",
                        {{"running", service_pool_.running() + media_pool_.running()},
                         {"waiting", service_pool_.waiting() + media_pool_.waiting()}}},
                       {"stores", std::move(stores)}},
                      request);
  });
}

HttpResponse StatusRoutes::page(HttpRequest& request) {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.body = status_page_html();
  response.req_id = request.request_id;
  // The page loads nothing from anywhere and may be framed by nobody.
  response.headers.emplace_back("Content-Security-Policy",
                                "default-src 'none'; style-src 'unsafe-inline'; script-src "
                                "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Cache-Control", "no-cache");
  return response;
}

}  // namespace vitrove
