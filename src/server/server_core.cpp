#include "server/server_core.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "server/admin_routes.h"
#include "server/encode_routes.h"
#include "server/status_routes.h"
#include "server/thread_counts.h"

namespace vitrove {
namespace {

constexpr std::size_t control_queue = 64;
constexpr std::size_t admin_threads = 2;
constexpr std::size_t admin_queue = 16;
// Of deletes there may be many at a time.
constexpr std::size_t far_threads = 4;
constexpr std::size_t far_queue = 256;

void append(std::vector<Route>& routes, std::vector<Route> more) {
  routes.insert(routes.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

}  // namespace

ServerCore::ServerCore(const ServerConfig& config, std::shared_ptr<EncodeService> service,
                       bool beyond_loopback)
    : config_(config),
      service_(std::move(service)),
      access_(config_, beyond_loopback),
      bodies_(config_.max_inflight_bytes),
      replies_(config_.pool_size, config_.max_inflight_bytes),
      metrics_(*service_),
      health_(*service_),
      control_pool_("vt-control", 1, control_queue),
      admin_pool_("vt-admin", admin_threads, admin_queue),
      far_pool_("vt-far", far_threads, far_queue),
      service_pool_("vt-service", service_threads(config_), config_.max_queue),
      media_pool_("vt-media", config_.media_threads, config_.max_queue) {
  encode_routes_ =
      std::make_unique<EncodeRoutes>(config_, access_.has_tenants(), *service_, replies_);
  status_routes_ = std::make_unique<StatusRoutes>(config_, *service_, metrics_, health_, phase_,
                                                  service_pool_, media_pool_);
  admin_routes_ = std::make_unique<AdminRoutes>(*service_);
  std::vector<Route> routes = encode_routes_->routes();
  append(routes, status_routes_->routes());
  append(routes, admin_routes_->routes());
  router_ = std::make_unique<Router>(
      std::move(routes), access_,
      Lanes{control_pool_, admin_pool_, far_pool_, service_pool_, media_pool_},
      config_.request_timeout, phase_, *this);
}

ServerCore::~ServerCore() { stop(); }

void ServerCore::stop() {
  service_pool_.stop();
  media_pool_.stop();
  far_pool_.stop();
  admin_pool_.stop();
  control_pool_.stop();
  health_.stop();
}

void ServerCore::replied(const HttpRequest& request, const HttpResponse& response,
                         std::chrono::microseconds took) {
  const std::string_view label = request.route == nullptr ? "other" : request.route->label;
  const bool is_probe = request.route != nullptr && request.route->is_probe;
  if (!is_probe) metrics_.request_done(label, response.status, took);
  log_.add({response.req_id, std::string(label), request.method, response.status,
            response.note.items, response.note.sources, static_cast<double>(took.count()) / 1000.0,
            is_probe});
}

}  // namespace vitrove
