// ServerCore: the encode server without its sockets: routes, pools, limits, metrics and logs around
// an EncodeService. Tests call its handler with plain requests; EncodeServer puts HTTP before it.
#pragma once

#include <atomic>
#include <memory>

#include "server/access_control.h"
#include "server/encode_service.h"
#include "server/health_monitor.h"
#include "server/http_handler.h"
#include "server/metrics.h"
#include "server/reply_budget.h"
#include "server/request_log.h"
#include "server/router.h"
#include "server/server_config.h"
#include "server/worker_pool.h"

namespace vitrove {

class EncodeRoutes;
class StatusRoutes;
class AdminRoutes;

class ServerCore final : public ReplyObserver {
 public:
  // Throws Error{invalid_argument} for bad keys or a bad tenant file.
  ServerCore(const ServerConfig& config, std::shared_ptr<EncodeService> service,
             bool beyond_loopback);
  ~ServerCore() override;

  HttpHandler& handler() { return *router_; }
  EncodeService& service() { return *service_; }
  // Request bodies that are held.
  ByteAllowance& bodies() { return bodies_; }
  const ReplyBudget& replies() const { return replies_; }

  void set_phase(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }

  // Joins the threads; what was queued is answered with 503. After it nobody holds a Responder.
  void stop();

  void replied(const HttpRequest& request, const HttpResponse& response,
               std::chrono::microseconds took) override;

 private:
  const ServerConfig config_;
  const std::shared_ptr<EncodeService> service_;
  const AccessControl access_;
  ByteAllowance bodies_;
  ReplyBudget replies_;
  ServerMetrics metrics_;
  HealthMonitor health_;
  RequestLog log_;
  std::atomic<Phase> phase_{Phase::serving};
  std::unique_ptr<EncodeRoutes> encode_routes_;
  std::unique_ptr<StatusRoutes> status_routes_;
  std::unique_ptr<AdminRoutes> admin_routes_;
  std::unique_ptr<Router> router_;
  // Last, so that their threads end before anything they use.
  WorkerPool control_pool_;
  WorkerPool admin_pool_;
  WorkerPool far_pool_;
  WorkerPool service_pool_;
  WorkerPool media_pool_;
};

}  // namespace vitrove
