// What the stores have to suffer: spells of errors, lies, damage, slowness and hanging, and calm
// ones between them, on a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "soak/world.h"

namespace vitrove::soak {

class Weather {
 public:
  Weather(World& world, unsigned seed)
      : world_(world), random_(seed), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // Calm from now on until storm(); both wait for the spell to end.
  void calm();
  void storm();

 private:
  void run(const std::stop_token& stop);
  void spell(const std::stop_token& stop);
  void slow(FaultyStore& store, const std::stop_token& stop);
  void hang(FaultyStore& store, const std::stop_token& stop);
  void rain(FaultyStore& store, const std::stop_token& stop);
  // False when the spell is to end at once.
  bool pause(std::chrono::milliseconds time, const std::stop_token& stop);

  World& world_;
  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool calm_ = false;
  bool raging_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace vitrove::soak
