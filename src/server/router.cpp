#include "server/router.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

#include "base/log.h"
#include "server/error_reply.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

bool matches(const Route& route, std::string_view path) {
  const bool takes_segment = route.path.size() > 1 && route.path.ends_with('/');
  if (!takes_segment) return path == route.path;
  return path.starts_with(route.path) && path.size() > route.path.size() &&
         path.find('/', route.path.size()) == std::string_view::npos;
}

void add_method(std::string& list, std::string_view method) {
  if (!list.empty()) list += ", ";
  list += method;
  if (method == "GET") list += ", HEAD";
}

HttpResponse no_content(const std::string& allowed) {
  HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  response.headers.emplace_back("Allow", allowed);
  return response;
}

// Travels with a job. A job that is dropped unrun (the server is stopping), or cannot even fail for
// want of memory, still gets its answer.
class PendingJob {
 public:
  PendingJob(HttpRequest request, Responder respond)
      : request_(std::move(request)), respond_(std::move(respond)) {}
  PendingJob(const PendingJob&) = delete;
  PendingJob& operator=(const PendingJob&) = delete;
  ~PendingJob() {
    if (!respond_) return;
    // For want of memory even this can fail; the connection then gives up when the time is over.
    try {
      respond_(error_reply(503, "unavailable", "the request was not taken up", req_id()));
    } catch (const std::exception& error) {
      try_log_error("a dropped request could not be answered", error.what());
    }
  }

  // Runs a step of the work and answers, unless that leaves something for another lane.
  std::optional<Later> run(const std::function<Answer(HttpRequest&)>& step) {
    // Whoever has left, or waited too long, has had his answer.
    if (request_.cancel.stop_requested()) {
      respond_ = nullptr;
      return std::nullopt;
    }
    Answer answer = reply_or_error(req_id(), [&] { return step(request_); });
    if (auto* later = std::get_if<Later>(&answer)) return std::move(*later);
    std::exchange(respond_, nullptr)(std::get<HttpResponse>(std::move(answer)));
    return std::nullopt;
  }

  void refuse() {
    HttpResponse response =
        error_reply(429, "queue_full", "too many requests are waiting", req_id());
    std::exchange(respond_, nullptr)(std::move(response));
  }

 private:
  const std::string& req_id() const { return request_.request_id; }

  HttpRequest request_;
  Responder respond_;
};

WorkerPool* pool_of(const Lanes& lanes, Lane lane) {
  switch (lane) {
    case Lane::io:
      return nullptr;
    case Lane::control:
      return &lanes.control;
    case Lane::admin:
      return &lanes.admin;
    case Lane::far:
      return &lanes.far;
    case Lane::service:
      return &lanes.service;
    case Lane::media:
      return &lanes.media;
  }
  return nullptr;
}

using Step = std::function<Answer(HttpRequest&)>;

void enqueue(const std::shared_ptr<PendingJob>& job, const Lanes& lanes, Lane lane, Step step) {
  const auto run = [job, lanes, step = std::move(step)] {
    if (auto later = job->run(step)) {
      enqueue(job, lanes, later->lane,
              [rest = std::move(later->rest)](HttpRequest&) -> Answer { return rest(); });
    }
  };
  WorkerPool* pool = pool_of(lanes, lane);
  if (pool == nullptr) return run();
  if (!pool->submit(run)) job->refuse();
}

}  // namespace

Router::Router(std::vector<Route> routes, const AccessControl& access, Lanes lanes,
               std::chrono::microseconds request_timeout, const std::atomic<Phase>& phase,
               ReplyObserver& observer)
    : routes_(std::move(routes)),
      access_(access),
      lanes_(lanes),
      request_timeout_(request_timeout),
      phase_(phase),
      observer_(observer) {}

const Route* Router::find(const HttpRequest& request, std::string& allowed) const {
  const bool is_head = request.method == "HEAD";
  const std::string_view method = is_head ? std::string_view("GET") : request.method;
  for (const auto& route : routes_) {
    if (!matches(route, request.path)) continue;
    if (route.method == method) return &route;
    add_method(allowed, route.method);
  }
  return nullptr;
}

Admission Router::admit(HttpRequest& request) {
  if (request.request_id.empty()) request.request_id = make_req_id();
  request.deadline = request.received + request_timeout_;
  Admission admission;
  admission.refusal = refuse(request);
  if (request.route != nullptr) {
    admission.body_limit = request.route->body_limit;
    admission.ends_with_client =
        request.route->lane == Lane::service || request.route->lane == Lane::admin;
    request.deadline = request.received + std::max(request_timeout_, request.route->patience);
  }
  return admission;
}

// A full lane is no reason to send away what may not need it; handle() finds out.
// A body whose length is not told may be of any.
bool Router::may_be_quick(const HttpRequest& request) {
  const std::uint64_t length = request.declared_body.value_or(
      request.is_chunked ? std::numeric_limits<std::uint64_t>::max() : 0);
  return length <= request.route->quick_body_limit;
}

bool Router::has_room_for(const HttpRequest& request) const {
  const Route& route = *request.route;
  if (route.quick && may_be_quick(request)) return true;
  const WorkerPool* pool = pool_of(lanes_, route.lane);
  return pool == nullptr || !pool->full();
}

std::optional<HttpResponse> Router::refuse(HttpRequest& request) const {
  if (request.path.empty()) {
    return error_reply(400, "invalid_argument",
                       "the request's target is malformed, or names a parameter twice",
                       request.request_id);
  }
  std::string allowed;
  request.route = find(request, allowed);
  if (request.route == nullptr) {
    if (request.method == "OPTIONS" && request.path == "*")
      return no_content("GET, HEAD, POST, DELETE");
    if (allowed.empty()) return error_reply(404, "not_found", "no such route", request.request_id);
    allowed += ", OPTIONS";
    if (request.method == "OPTIONS") return no_content(allowed);
    auto response =
        error_reply(405, "method_not_allowed", "this route takes " + allowed, request.request_id);
    response.headers.emplace_back("Allow", allowed);
    return response;
  }
  try {
    access_.check(request.route->access, request);
  } catch (const Error& error) {
    return error_reply(error, request.request_id);
  }
  if (phase_ == Phase::draining && !request.route->is_served_draining) {
    auto response = error_reply(503, "unavailable", "the server is draining", request.request_id);
    response.close = true;
    return response;
  }
  if (!has_room_for(request)) {
    return error_reply(429, "queue_full", "too many requests are waiting", request.request_id);
  }
  return std::nullopt;
}

void Router::handle(HttpRequest request, Responder respond) {
  const Route& route = *request.route;
  if (route.quick) {
    auto response = route.quick(request);
    if (response) return respond(std::move(*response));
  }
  if (route.asynchronous) return route.asynchronous(std::move(request), std::move(respond));
  const auto job = std::make_shared<PendingJob>(std::move(request), std::move(respond));
  enqueue(job, lanes_, route.lane, route.handler);
}

void Router::on_reply(const HttpRequest& request, const HttpResponse& response) {
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - request.received);
  observer_.replied(request, response, took);
}

}  // namespace vitrove
