// Router: from a request to the function that answers it, on the right thread.
//
// Each route has a lane: `io` answers at once on the I/O thread and must not block; `control`
// (metrics, statistics) and `admin` (flush, reload, real probes) have threads of their own, so that
// load on `service` never delays them; `far` takes flushes of stores and deletes, which may hang
// there for as long as they like and keep nothing else waiting; `media` takes what has to wait for
// other hosts' files, so that slow ones do not delay requests that bring their media along. A full
// lane is answered with 429 at once; what `quick` may answer is tried first.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/access_control.h"
#include "server/http_handler.h"
#include "server/worker_pool.h"

namespace vitrove {

enum class Lane : std::uint8_t { io, control, admin, far, service, media };

struct Later;
using Answer = std::variant<HttpResponse, Later>;

// What is left of a request that goes on in another lane; its HttpRequest lives on meanwhile.
struct Later {
  Lane lane = Lane::service;
  std::function<HttpResponse()> rest;  // as the route's handler
};

struct Route {
  std::string_view method;
  std::string_view path;   // a trailing '/' beyond the root takes one more segment
  std::string_view label;  // in metrics and logs
  Lane lane = Lane::io;
  Access access = Access::open;
  // What it throws becomes a reply.
  std::function<Answer(HttpRequest&)> handler;
  // Tried first, on the I/O thread: an answer that costs next to nothing, or nothing.
  std::function<std::optional<HttpResponse>(HttpRequest&)> quick = {};
  std::uint64_t quick_body_limit = 0;  // larger ones it does not look at
  // In place of `handler`: answers later, and does not block.
  std::function<void(HttpRequest, Responder)> asynchronous = {};
  std::uint64_t body_limit = 64 * 1024;
  bool is_probe = false;                  // left out of counters, logged at debug
  bool is_served_draining = false;        // answered to the end
  std::chrono::microseconds patience{0};  // at least this much time, whatever the request timeout
};

// serving -> leaving (ready says no, all else goes on) -> draining (no new work).
enum class Phase : std::uint8_t { serving, leaving, draining };

struct Lanes {
  WorkerPool& control;
  WorkerPool& admin;
  WorkerPool& far;
  WorkerPool& service;
  WorkerPool& media;
};

class ReplyObserver {
 public:
  virtual ~ReplyObserver() = default;
  virtual void replied(const HttpRequest& request, const HttpResponse& response,
                       std::chrono::microseconds took) = 0;
};

class Router final : public HttpHandler {
 public:
  // Everything handed in outlives the router.
  Router(std::vector<Route> routes, const AccessControl& access, Lanes lanes,
         std::chrono::microseconds request_timeout, const std::atomic<Phase>& phase,
         ReplyObserver& observer);

  Admission admit(HttpRequest& request) override;
  void handle(HttpRequest request, Responder respond) override;
  void on_reply(const HttpRequest& request, const HttpResponse& response) override;

 private:
  const Route* find(const HttpRequest& request, std::string& allowed) const;
  std::optional<HttpResponse> refuse(HttpRequest& request) const;
  static bool may_be_quick(const HttpRequest& request);
  bool has_room_for(const HttpRequest& request) const;

  const std::vector<Route> routes_;
  const AccessControl& access_;
  const Lanes lanes_;
  const std::chrono::microseconds request_timeout_;
  const std::atomic<Phase>& phase_;
  ReplyObserver& observer_;
};

}  // namespace vitrove
