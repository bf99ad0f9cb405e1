// SessionRegistry: the open connections, so that a server can drain them, end them and wait.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace vitrove {

class Connection {
 public:
  virtual ~Connection() = default;
  // No further request; ends after the one that is under way. Any thread.
  virtual void drain() = 0;
  // Ends now. Any thread.
  virtual void abort() = 0;
};

class SessionRegistry {
 public:
  void add(const std::shared_ptr<Connection>& connection) {
    std::lock_guard lock(mutex_);
    connections_[connection.get()] = connection;
  }

  void remove(const Connection* connection) {
    {
      std::lock_guard lock(mutex_);
      connections_.erase(connection);
    }
    changed_.notify_all();
  }

  std::size_t count() const {
    std::lock_guard lock(mutex_);
    return connections_.size();
  }

  // From here on no reply promises another one, those included that are made before drain_all()
  // has reached their connection.
  void begin_drain() { draining_ = true; }
  bool is_draining() const { return draining_; }
  void drain_all() {
    for (const auto& connection : snapshot()) connection->drain();
  }
  void abort_all() {
    for (const auto& connection : snapshot()) connection->abort();
  }

  // False when some are left at the deadline.
  bool wait_empty(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [this] { return connections_.empty(); });
  }

 private:
  std::vector<std::shared_ptr<Connection>> snapshot() const {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [key, weak] : connections_) {
      if (auto connection = weak.lock()) all.push_back(std::move(connection));
    }
    return all;
  }

  std::atomic<bool> draining_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const Connection*, std::weak_ptr<Connection>> connections_;
};

}  // namespace vitrove
