// ServerMetrics: the Prometheus page, with exactly the names of design section 8. Cache and encoder
// counters are read from their owners at each scrape; requests are counted here.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "server/encode_service.h"

namespace vitrove {

class ServerMetrics {
 public:
  // The service outlives the metrics.
  explicit ServerMetrics(const EncodeService& service);
  ~ServerMetrics();

  void request_done(std::string_view route, int status, std::chrono::microseconds took);

  // Text exposition format.
  std::string text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
