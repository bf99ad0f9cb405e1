// How many threads each kind of work gets, from the options and the cores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <thread>

#include "server/server_config.h"

namespace vitrove {

inline std::size_t core_count() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

// Requests in progress: they mostly wait, for stores, media and the encoder.
inline std::size_t service_threads(const ServerConfig& config) {
  if (config.service_threads != 0) return config.service_threads;
  return std::max<std::size_t>(8, 4 * core_count());
}

// Helpers that work on further items of a request; enough of them to fill batches.
inline std::size_t fill_threads(const ServerConfig& config) {
  return std::max<std::size_t>(2 * core_count(), 2 * std::size_t{config.max_batch_size});
}

}  // namespace vitrove
