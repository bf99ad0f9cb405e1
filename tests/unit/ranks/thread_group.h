// Ranks of one process: collectives between threads, for tests, through the callbacks that a host
// with its own process group would give.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "vitrove/collectives.h"
#include "vitrove/error.h"

namespace vitrove::testing {

class ThreadGroup {
 public:
  explicit ThreadGroup(int size) : shared_(std::make_shared<Shared>()), size_(size) {
    shared_->size = size;
    shared_->next.resize(static_cast<std::size_t>(size));
  }

  std::unique_ptr<Collectives> member(int rank) const {
    CollectiveCallbacks callbacks;
    callbacks.rank = rank;
    callbacks.size = size_;
    callbacks.broadcast = [shared = shared_, rank](auto bytes, auto timeout) {
      shared->broadcast(rank, bytes, timeout);
    };
    callbacks.all_reduce_min = [shared = shared_, rank](auto values, auto timeout) {
      shared->all_reduce_min(rank, values, timeout);
    };
    callbacks.close = [shared = shared_] { shared->close(); };
    return make_callback_collectives(std::move(callbacks));
  }

 private:
  struct Call {
    bool said = false;
    std::vector<std::byte> bytes;
    std::vector<std::int64_t> least;
    int arrived = 0;
  };

  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    int size = 0;
    bool closed = false;
    std::vector<std::uint64_t> next;      // call of each rank
    std::map<std::uint64_t, Call> calls;  // the n-th call of one rank meets the n-th of all

    Call& arrive(int rank) {
      if (closed) throw std::runtime_error("the group is closed");
      auto& call = calls[next[static_cast<std::size_t>(rank)]++];
      ++call.arrived;
      return call;
    }

    template <typename Condition>
    void wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout,
              Condition condition) {
      if (!changed.wait_for(lock, timeout, [&] { return closed || condition(); })) {
        throw Error(ErrorCode::deadline_exceeded, "a rank did not answer in time");
      }
      if (!condition()) throw std::runtime_error("the group is closed");
    }

    void broadcast(int rank, std::span<std::byte> bytes, std::chrono::milliseconds timeout) {
      std::unique_lock lock(mutex);
      auto& call = arrive(rank);
      if (rank == 0) {
        call.bytes.assign(bytes.begin(), bytes.end());
        call.said = true;
        changed.notify_all();
        return;
      }
      wait(lock, timeout, [&] { return call.said; });
      if (call.bytes.size() != bytes.size()) throw std::runtime_error("sizes differ");
      std::ranges::copy(call.bytes, bytes.begin());
    }

    void all_reduce_min(int rank, std::span<std::int64_t> values,
                        std::chrono::milliseconds timeout) {
      std::unique_lock lock(mutex);
      auto& call = arrive(rank);
      if (call.least.empty()) call.least.assign(values.begin(), values.end());
      if (call.least.size() != values.size()) throw std::runtime_error("sizes differ");
      for (std::size_t i = 0; i < values.size(); ++i) {
        call.least[i] = std::min(call.least[i], values[i]);
      }
      if (call.arrived == size) changed.notify_all();
      wait(lock, timeout, [&] { return call.arrived == size; });
      std::ranges::copy(call.least, values.begin());
    }

    void close() {
      {
        std::lock_guard lock(mutex);
        closed = true;
      }
      changed.notify_all();
    }
  };

  const std::shared_ptr<Shared> shared_;
  const int size_;
};

}  // namespace vitrove::testing
