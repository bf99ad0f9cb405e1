// Waiting on conditions, with a deadline that only a broken program reaches.
#pragma once

#include <chrono>
#include <thread>

namespace vitrove::testing {

template <typename Condition>
bool eventually(Condition condition, std::chrono::seconds patience = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace vitrove::testing
