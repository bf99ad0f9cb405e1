#include "server/encode_server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include <sys/resource.h>

#include "base/log.h"
#include "server/http_listener.h"
#include "server/server_core.h"

namespace vitrove {
namespace {

using Clock = std::chrono::steady_clock;

// For stores, media, models and logs.
constexpr std::uint64_t spare_descriptors = 256;

// Beyond it a connection is told so; out of descriptors nobody would be told anything.
std::uint32_t connections_within_limits(std::uint32_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const std::uint64_t usable =
      std::max(limit.rlim_cur / 4, limit.rlim_cur - std::min(limit.rlim_cur, spare_descriptors));
  if (wanted <= usable) return wanted;
  logger()->warn("{} connections at most, and not {}: the limit of open files is {}", usable,
                 wanted, limit.rlim_cur);
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(usable, 1));
}

ListenerOptions listener_options(const ServerConfig& config) {
  ListenerOptions options;
  options.host = config.host;
  options.port = config.port;
  options.io_threads = config.io_threads;
  options.max_connections = connections_within_limits(config.max_connections);
  options.send_stall_timeout = config.send_stall_timeout;
  return options;
}

}  // namespace

struct EncodeServer::Impl {
  Impl(const ServerConfig& options, std::shared_ptr<EncodeService> encode_service)
      : config(options),
        core(options, std::move(encode_service), listens_beyond_loopback(options.host)) {}
  ~Impl() { stop(); }

  void stop();
  bool drain();
  bool sleep_until(Clock::time_point when);

  const ServerConfig config;
  ServerCore core;
  std::unique_ptr<HttpListener> listener;

  std::mutex mutex;
  std::condition_variable changed;
  bool drain_asked = false;
  bool force_asked = false;
  Clock::time_point drain_began;
};

// Connections first, so that nothing new comes; then the pools, so that nobody holds a reply's
// responder; then what the connections lived in.
void EncodeServer::Impl::stop() {
  if (listener) listener->stop();
  core.stop();
  listener.reset();
}

// False when forced before.
bool EncodeServer::Impl::sleep_until(Clock::time_point when) {
  std::unique_lock lock(mutex);
  return !changed.wait_until(lock, when, [this] { return force_asked; });
}

bool EncodeServer::Impl::drain() {
  const auto deadline = drain_began + config.drain_delay + config.drain_timeout;
  if (!sleep_until(drain_began + config.drain_delay)) return false;
  core.set_phase(Phase::draining);
  listener->drain();
  // In slices, since a second signal must be able to cut it short.
  constexpr std::chrono::milliseconds slice{50};
  bool idle = false;
  while (!idle && Clock::now() < deadline) {
    idle = listener->wait_idle(std::min(deadline, Clock::now() + slice));
    if (!idle && !sleep_until(Clock::now())) return false;
  }
  // Looked at in any case: requests may have used up the time.
  auto& controller = core.service().controller();
  bool flushed = controller.wait_for_puts(std::min(deadline, Clock::now() + slice));
  while (!flushed && Clock::now() < deadline) {
    if (!sleep_until(Clock::now())) return false;
    flushed = controller.wait_for_puts(std::min(deadline, Clock::now() + slice));
  }
  if (!idle) logger()->warn("drain: requests are still running at the deadline");
  if (!flushed) logger()->warn("drain: puts are still queued at the deadline");
  return idle && flushed;
}

EncodeServer::EncodeServer(const ServerConfig& config)
    : EncodeServer(config, EncodeService::from_config(config)) {}

EncodeServer::EncodeServer(const ServerConfig& config, std::shared_ptr<EncodeService> service)
    : impl_(std::make_unique<Impl>(config, std::move(service))) {}

EncodeServer::~EncodeServer() = default;

void EncodeServer::start() {
  auto listener = std::make_unique<HttpListener>(listener_options(impl_->config),
                                                 impl_->core.handler(), impl_->core.bodies());
  listener->start();
  impl_->listener = std::move(listener);
  logger()->info("serving on {} port {}", impl_->config.host, port());
}

std::uint16_t EncodeServer::port() const { return impl_->listener ? impl_->listener->port() : 0; }
std::string EncodeServer::host() const { return impl_->config.host; }

void EncodeServer::begin_drain() {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->drain_asked) return;
    impl_->drain_asked = true;
    impl_->drain_began = Clock::now();
  }
  impl_->core.set_phase(Phase::leaving);
  impl_->changed.notify_all();
}

void EncodeServer::force_stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->force_asked = true;
  }
  impl_->changed.notify_all();
}

bool EncodeServer::wait() {
  bool forced = false;
  {
    std::unique_lock lock(impl_->mutex);
    impl_->changed.wait(lock, [this] { return impl_->drain_asked || impl_->force_asked; });
    forced = impl_->force_asked;
  }
  const bool clean = !forced && impl_->listener && impl_->drain();
  // No thread of the pools is waited for here, drained or not: one may be stuck in an encoder's
  // run, a reload or a store's call that nobody waits for any more, and the caller may prefer to
  // leave without it.
  if (impl_->listener) impl_->listener->stop();
  return clean;
}

EncodeService& EncodeServer::service() { return impl_->core.service(); }

}  // namespace vitrove
