#include "soak/weather.h"

#include <array>

namespace vitrove::soak {

using namespace std::chrono_literals;
using testing::Fault;
using testing::StoreOp;

void Weather::calm() {
  std::unique_lock lock(mutex_);
  calm_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !raging_; });
}

void Weather::storm() {
  std::lock_guard lock(mutex_);
  calm_ = false;
  changed_.notify_all();
}

void Weather::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !calm_; })) return;
      raging_ = true;
    }
    spell(stop);
    world_.near().heal();
    world_.far().heal();
    {
      std::lock_guard lock(mutex_);
      raging_ = false;
    }
    changed_.notify_all();
    pause(50ms, stop);
  }
}

bool Weather::pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, time, [this] { return calm_; });
  return !calm_ && !stop.stop_requested();
}

void Weather::spell(const std::stop_token& stop) {
  FaultyStore& store = random_() % 2 == 0 ? world_.near() : world_.far();
  switch (random_() % 5) {
    case 0:
      pause(200ms, stop);
      break;
    case 1:
      slow(store, stop);
      break;
    case 2:
      hang(store, stop);
      break;
    default:
      rain(store, stop);
  }
}

// Every call takes up to ten milliseconds: within its time.
void Weather::slow(FaultyStore& store, const std::stop_token& stop) {
  for (const StoreOp op :
       {StoreOp::get, StoreOp::put, StoreOp::exist, StoreOp::claim, StoreOp::release}) {
    store.add({.op = op, .fault = Fault::hold_before});
  }
  for (int i = 0; i < 20; ++i) {
    store.gate().close();
    const bool go_on = pause(10ms, stop);
    store.gate().open();
    if (!go_on) return;
  }
}

// Calls stand until long after their deadlines, some of them with their work done.
void Weather::hang(FaultyStore& store, const std::stop_token& stop) {
  const Fault fault = random_() % 2 == 0 ? Fault::hold_before : Fault::hold_after;
  store.gate().close();
  for (const StoreOp op : {StoreOp::get, StoreOp::put, StoreOp::exist, StoreOp::remove,
                           StoreOp::claim, StoreOp::renew, StoreOp::release}) {
    store.add({.op = op, .fault = fault});
  }
  pause(400ms, stop);
}

void Weather::rain(FaultyStore& store, const std::stop_token& stop) {
  constexpr std::array faults{Fault::error,       Fault::odd_status, Fault::no_effect,
                              Fault::zero_size,   Fault::short_read, Fault::wrong_bytes,
                              Fault::wrong_size,  Fault::throws,     Fault::missing_result,
                              Fault::extra_result};
  constexpr std::array ops{StoreOp::get, StoreOp::get, StoreOp::put, StoreOp::exist};
  for (int i = 0; i < 4; ++i) {
    const Fault fault = faults[random_() % faults.size()];
    store.add({.op = ops[random_() % ops.size()],
               .fault = fault,
               .bytes = 1 + random_() % 1000,
               .skip = random_() % 20,
               .times = 1 + random_() % 20});
  }
  store.add({.op = StoreOp::put, .status = StoreStatus::no_space, .skip = 10, .times = 5});
  for (const StoreOp op : {StoreOp::claim, StoreOp::release}) {
    store.add({.op = op, .skip = random_() % 10, .times = 5});
    store.add({.op = op, .fault = Fault::throws, .skip = random_() % 10, .times = 5});
  }
  store.add({.op = StoreOp::exist, .fault = Fault::vanish, .skip = 10, .times = 10});
  pause(200ms, stop);
}

}  // namespace vitrove::soak
