// Puts load on a store and measures it: what `vitrove bench store` does, without its words.
//
// The values lie in a page pool that is announced to the store, as a server's do. Each begins and
// ends with its own number, so that a get that brings something else is found out at next to no
// cost. Keys are random for every run; what was put is removed by the destructor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "vitrove/embedding_store.h"
#include "vitrove/page_pool.h"

namespace vitrove::cli {

enum class LoadOp : std::uint8_t { put, exist, get };
std::string_view to_string(LoadOp op);

struct LoadShape {
  std::uint64_t value_bytes = std::uint64_t{1} << 20;
  std::size_t batch = 1;    // keys a call
  std::size_t threads = 1;  // calls at a time
  std::size_t count = 1;    // values put; a multiple of `batch`
  // How long to look and to get, over and over; 0: each value once. Each is put once anyway.
  std::chrono::microseconds time{0};
  std::chrono::microseconds call_timeout{10'000'000};
};

struct LoadFigures {
  std::uint64_t operations = 0;  // keys that were answered well
  std::uint64_t failed = 0;
  std::string fault;  // of the first that failed
  double seconds = 0;
  double cpu_seconds = 0;  // of this process
  double p50_us = 0;       // of a call, whatever its batch
  double p99_us = 0;
};

class StoreLoad {
 public:
  static constexpr std::uint64_t least_value_bytes = 16;

  // Throws Error when the values do not fit into memory.
  StoreLoad(EmbeddingStore& store, const LoadShape& shape);
  ~StoreLoad();
  StoreLoad(const StoreLoad&) = delete;
  StoreLoad& operator=(const StoreLoad&) = delete;

  // Called now and then from the calling thread with how much is done (0 to 1); false ends the run.
  using Tick = std::function<bool(double done)>;
  LoadFigures run(LoadOp op, const Tick& tick);

 private:
  class Worker;
  class Run;

  std::size_t batches() const { return shape_.count / shape_.batch; }
  void remove_all() noexcept;

  EmbeddingStore& store_;
  const LoadShape shape_;
  PagePool pool_;
  std::vector<MutableBuffer> slots_;  // `batch` for each thread
  std::vector<EmbeddingKey> keys_;
};

}  // namespace vitrove::cli
