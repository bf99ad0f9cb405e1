// Routes that tell how the server is: /health, /ready, /metrics, /stats, /status.json and the page
// for people at /.
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "server/encode_service.h"
#include "server/health_monitor.h"
#include "server/http_message.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/server_config.h"

namespace vitrove {

class StatusRoutes {
 public:
  // All outlive the routes.
  StatusRoutes(const ServerConfig& config, const EncodeService& service,
               const ServerMetrics& metrics, HealthMonitor& health, const std::atomic<Phase>& phase,
               const WorkerPool& service_pool, const WorkerPool& media_pool);

  std::vector<Route> routes();

 private:
  HttpResponse health(const HttpRequest& request);
  HttpResponse ready(HttpRequest& request);
  HttpResponse metrics(HttpRequest& request);
  HttpResponse stats(HttpRequest& request);
  HttpResponse status(HttpRequest& request);
  HttpResponse page(HttpRequest& request);
  double uptime_seconds() const;

  const ServerConfig& config_;
  const EncodeService& service_;
  const ServerMetrics& metrics_;
  HealthMonitor& health_;
  const std::atomic<Phase>& phase_;
  const WorkerPool& service_pool_;
  const WorkerPool& media_pool_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace vitrove
