#include "server/request_log.h"

#include <chrono>
#include <utility>

#include "base/log.h"

namespace vitrove {
namespace {

constexpr std::size_t max_lines = 16'384;
// Lines are gathered for so long, so that a burst costs few wake-ups.
constexpr std::chrono::milliseconds gather{10};

}  // namespace

RequestLog::RequestLog() : thread_([this] { run(); }) {}

RequestLog::~RequestLog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void RequestLog::add(Line line) {
  const auto level = line.is_probe ? spdlog::level::debug : spdlog::level::info;
  if (!logger()->should_log(level)) return;
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    if (lines_.size() >= max_lines) {
      ++dropped_;
      return;
    }
    is_first = lines_.empty();
    lines_.push_back(std::move(line));
  }
  if (is_first) wake_.notify_one();
}

void RequestLog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_ || !lines_.empty()) {
    wake_.wait(lock, [this] { return stopping_ || !lines_.empty(); });
    if (!stopping_) wake_.wait_for(lock, gather, [this] { return stopping_; });
    const auto lines = std::exchange(lines_, {});
    const auto dropped = std::exchange(dropped_, 0);
    lock.unlock();
    write(lines, dropped);
    lock.lock();
  }
}

void RequestLog::write(const std::vector<Line>& lines, std::uint64_t dropped) {
  for (const auto& line : lines) {
    logger()->log(line.is_probe ? spdlog::level::debug : spdlog::level::info,
                  "req_id={} {} {} {} items={} sources=[{}] {:.2f} ms", line.req_id, line.method,
                  line.route, line.status, line.items, line.sources, line.milliseconds);
  }
  if (dropped != 0) logger()->warn("{} request lines were dropped", dropped);
}

}  // namespace vitrove
