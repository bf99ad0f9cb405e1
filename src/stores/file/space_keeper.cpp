#include "stores/file/space_keeper.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "stores/batch.h"
#include "stores/file/errors.h"

namespace vitrove::file {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto heartbeat = 60s;
constexpr auto shrink_interval = 10s;

// How long a put waits for others to finish when there is nothing left to evict, and between looks.
constexpr auto stuck_patience = 10s;
constexpr auto stuck_pause = 20ms;

// What a writer may have reserved and not yet written.
constexpr std::uint64_t max_share = std::uint64_t{64} << 20;
std::uint64_t share_of(std::uint64_t capacity) { return std::min(capacity / 64, max_share); }

// What a guest may put in all.
constexpr std::uint64_t guest_share = std::uint64_t{1} << 20;

// A file of this size, and the directories that may have to be made for it.
std::uint64_t room_for(std::uint64_t value_bytes) {
  constexpr std::uint64_t block = 4096;
  return (value_bytes + block - 1) / block * block + 2 * block;
}

Clock::time_point sooner(Clock::time_point deadline, Clock::duration patience) {
  return std::min(deadline, Clock::now() + patience);
}

}  // namespace

SpaceKeeper::SpaceKeeper(const Layout& layout, DirectoryMaker& maker, FaultLog& faults,
                         const FileStoreOptions& options)
    : layout_(layout),
      maker_(maker),
      faults_(faults),
      options_(options),
      self_(make_identity()),
      state_file_(layout.state_path()),
      evictor_(layout, state_file_, maker, self_, options),
      capacity_(options.capacity) {
  if (options.guest) {
    remaining_ = guest_share;
    return;
  }
  thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
}

SpaceKeeper::~SpaceKeeper() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  sign_out();
}

// --- Grants ---

SpaceKeeper::Grant::~Grant() {
  if (keeper_ != nullptr) keeper_->give_back(bytes_, is_visible_);
}

void SpaceKeeper::Grant::became_visible() {
  if (keeper_ == nullptr || is_visible_) return;
  is_visible_ = true;
  keeper_->unseen_ -= bytes_;
}

void SpaceKeeper::Grant::keep() {
  became_visible();
  keeper_ = nullptr;
}

void SpaceKeeper::give_back(std::uint64_t bytes, bool was_visible) {
  std::lock_guard lock(grant_mutex_);
  if (!was_visible) unseen_ -= bytes;
  remaining_ += bytes;
}

std::pair<StoreResult, SpaceKeeper::Grant> SpaceKeeper::reserve(std::uint64_t value_bytes,
                                                                const StoreContext& context) {
  const std::uint64_t bytes = room_for(value_bytes);
  Clock::time_point end_of_patience = Clock::time_point::max();
  for (;;) {
    const auto [answer, result] = try_reserve(bytes, context);
    if (answer == Answer::granted) return {StoreResult{}, Grant(this, bytes)};
    if (answer == Answer::refused) return {result, Grant()};
    if (Clock::now() >= end_of_patience) return {put_failure(ENOSPC), Grant()};
    // Where the pass made the room and others took it, the next one will make more.
    const StoreResult waited = wait_for_pass(bytes, context);
    if (waited.ok()) continue;
    const bool was_stuck = end_of_patience != Clock::time_point::max();
    if (was_stuck && waited.status == StoreStatus::timeout) return {put_failure(ENOSPC), Grant()};
    if (waited.error_number != ENOSPC) return {waited, Grant()};
    end_of_patience = std::min(end_of_patience, sooner(context.deadline, stuck_patience));
    if (!wait_while_stuck(end_of_patience, context)) {
      return {StoreResult{StoreStatus::cancelled}, Grant()};
    }
  }
}

// A directory full of what cannot be evicted is so for a moment only, as a rule: values under way
// will be whole, and then they can. False when the caller has gone.
bool SpaceKeeper::wait_while_stuck(Clock::time_point end_of_patience, const StoreContext& context) {
  std::unique_lock lock(request_mutex_);
  changed_.wait_until(lock, context.cancel, std::min(end_of_patience, Clock::now() + stuck_pause),
                      [] { return false; });
  return !context.cancel.stop_requested();
}

std::pair<SpaceKeeper::Answer, StoreResult> SpaceKeeper::try_reserve(std::uint64_t bytes,
                                                                     const StoreContext& context) {
  std::unique_lock lock(grant_mutex_, sooner(context.deadline, 1h));
  if (!lock) return {Answer::refused, {StoreStatus::timeout, 0, ETIMEDOUT}};
  if (remaining_.load() >= bytes) {
    remaining_ -= bytes;
    unseen_ += bytes;
    return {Answer::granted, {}};
  }
  if (options_.guest) return {Answer::refused, put_failure(ENOSPC)};

  Answer answer = Answer::needs_pass;
  std::uint64_t capacity = 0;
  std::uint64_t granted = 0;
  bool is_full = false;
  const int error = update_state(sooner(context.deadline, state_patience), [&](auto& state) {
    capacity = state.capacity();
    if (!state.counted) return;
    if (state.generation != grant_generation_) remaining_ = 0;  // the count has forgotten it
    grant_generation_ = state.generation;
    const std::uint64_t missing = bytes - std::min(bytes, remaining_.load());
    const std::uint64_t room = state.room();
    if (missing > room) return;
    granted = std::min(room, std::max(missing, share_of(capacity)));
    state.reserved += granted;
    is_full = room - granted < full_room(capacity);
    answer = Answer::granted;
  });
  if (error != 0) return {Answer::refused, put_failure(error)};
  if (bytes > capacity) return {Answer::refused, {StoreStatus::too_large}};
  if (answer == Answer::granted) {
    remaining_ += granted;
    remaining_ -= bytes;
    unseen_ += bytes;
  }
  lock.unlock();
  if (is_full) ask_for_pass();
  return {answer, {}};
}

// Every look at the state signs us in, too. A directory that has vanished is made again.
int SpaceKeeper::update_state(Clock::time_point deadline,
                              const std::function<void(DirectoryState&)>& change) {
  const auto attempt = [&] {
    return state_file_.update(deadline, static_cast<int>(maker_.file_mode()),
                              [&](DirectoryState& state) {
                                state.sign_in(self_, options_.capacity, wall_clock_ms());
                                change(state);
                                remember(state);
                              });
  };
  int error = attempt();
  if (error == ENOENT) {
    error = maker_.make(layout_.base());
    if (error == 0) error = attempt();
  }
  return error;
}

void SpaceKeeper::remember(const DirectoryState& state) {
  used_ = state.used();
  generation_ = state.generation;
  capacity_ = state.capacity();
}

void SpaceKeeper::sign_out() {
  std::lock_guard lock(grant_mutex_);
  state_file_.update(Clock::now() + 1s, static_cast<int>(maker_.file_mode()),
                     [&](DirectoryState& state) {
                       state.sign_out(self_);
                       if (state.generation == grant_generation_) {
                         state.reserved -= std::min(state.reserved, remaining_.load());
                       }
                     });
}

// --- What happened to files ---

void SpaceKeeper::note_removed(std::uint64_t bytes) {
  --added_;
  note_replaced(bytes);
}

void SpaceKeeper::note_replaced(std::uint64_t old_bytes) {
  freed_ += old_bytes;
  if (freed_.load() > full_room(capacity_.load())) ask_for_pass();
}

void SpaceKeeper::note_space_ran_out() {
  {
    std::lock_guard lock(request_mutex_);
    if (Clock::now() - last_shrink_ < shrink_interval) return;
    last_shrink_ = Clock::now();
    wants_shrinking_ = true;
  }
  ask_for_pass();
}

// By what the writers have told: what they have reserved and not used counts as used.
StoreHealth SpaceKeeper::health_as_guest() const {
  StoreHealth health;
  std::optional<DirectoryState> state = state_file_.read();
  if (!state) return health;
  state->forget_the_gone(self_, wall_clock_ms());
  if (!state->writers.empty()) health.capacity = state->capacity();
  if (state->counted) health.bytes = state->used();
  return health;
}

StoreHealth SpaceKeeper::health() const {
  if (options_.guest) return health_as_guest();
  StoreHealth health;
  const std::uint64_t used = used_.load();
  health.bytes = used - std::min(used, remaining_.load() + freed_.load());
  health.capacity = capacity_.load();
  const std::int64_t counted = counted_entries_.load();
  if (counted >= 0) {
    health.entries = static_cast<std::uint64_t>(std::max<std::int64_t>(counted + added_.load(), 0));
  }
  if (faults_.is_degraded()) {
    health.state = StoreState::degraded;
    health.detail = faults_.detail();
  }
  return health;
}

// --- Requests to the background thread ---

StoreResult SpaceKeeper::wait_for_pass(std::uint64_t room, const StoreContext& context) {
  std::unique_lock lock(request_mutex_);
  wanted_by_all_ += room;
  wanted_by_one_ = std::max(wanted_by_one_, room);
  const std::uint64_t ticket = ++requested_;
  changed_.notify_all();
  const bool done = changed_.wait_until(lock, context.cancel, sooner(context.deadline, 1h),
                                        [&] { return completed_ >= ticket; });
  if (!done) return {stop_reason(context).value_or(StoreStatus::timeout)};
  return pass_error_ == 0 ? StoreResult{} : put_failure(pass_error_);
}

void SpaceKeeper::ask_for_pass() {
  std::lock_guard lock(request_mutex_);
  if (requested_ != completed_) return;
  ++requested_;
  changed_.notify_all();
}

// --- The background thread ---

void SpaceKeeper::run(std::stop_token stop) noexcept {
  while (!stop.stop_requested()) {
    try {
      serve_requests(stop);
    } catch (const std::exception&) {
      // Out of memory, most likely: those who wait must hear of it.
      std::lock_guard lock(request_mutex_);
      completed_ = requested_;
      pass_error_ = ENOMEM;
      changed_.notify_all();
    }
  }
}

void SpaceKeeper::serve_requests(std::stop_token stop) {
  bool has_started = false;
  for (std::chrono::milliseconds retry = 0ms; !stop.stop_requested();) {
    Request request = wait_for_request(has_started ? heartbeat : retry, stop);
    if (stop.stop_requested()) return;
    if (has_started && !request.is_new) {
      update_state(Clock::now() + state_patience, [](DirectoryState&) {});
      continue;
    }
    int error = has_started ? 0 : start();
    if (status_of(error) == StoreStatus::no_space) {
      request.shrink = true;  // perhaps it is us who have filled it
      error = 0;
    }
    if (error == 0) error = make_room(request, stop);
    if (error == 0) has_started = true;
    if (error != 0 && !stop.stop_requested()) faults_.failed("directory", error);
    retry = std::clamp<std::chrono::milliseconds>(retry * 2, 100ms, 5s);
    complete(request, error);
  }
}

SpaceKeeper::Request SpaceKeeper::wait_for_request(std::chrono::milliseconds patience,
                                                   std::stop_token stop) {
  std::unique_lock lock(request_mutex_);
  changed_.wait_for(lock, stop, patience, [&] { return requested_ > completed_; });
  Request request;
  request.ticket = requested_;
  request.is_new = requested_ > completed_;
  request.least = std::exchange(wanted_by_one_, 0);
  // Not more than half of all there is for many at once: they can come again.
  const std::uint64_t by_all = std::min(std::exchange(wanted_by_all_, 0), capacity_.load() / 2);
  request.room = std::max(by_all, request.least);
  request.shrink = std::exchange(wants_shrinking_, false);
  return request;
}

void SpaceKeeper::complete(const Request& request, int error) {
  std::lock_guard lock(request_mutex_);
  completed_ = request.ticket;
  pass_error_ = error;
  changed_.notify_all();
}

int SpaceKeeper::start() {
  const int error = probe();
  if (error == 0) {
    faults_.succeeded();
  } else {
    faults_.failed("directory", error);
  }
  return error;
}

// Whether a file can be made and written to. It loses its name before that, so that a crash leaves
// nothing behind.
int SpaceKeeper::probe() {
  if (const int error = maker_.make(layout_.base())) return error;
  const std::string path = layout_.base() + "/.vitrove-probe-" + self_.token + '-' +
                           std::to_string(probes_.fetch_add(1));
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno;
  if (::unlink(path.c_str()) != 0) return errno;
  return ::write(fd.get(), "x", 1) == 1 ? 0 : errno;
}

int SpaceKeeper::make_room(const Request& request, std::stop_token stop) {
  const std::uint64_t generation = generation_.load();
  auto wait = 10ms;
  for (;;) {
    const int error = run_pass(request, stop);
    if (error != EBUSY && error != ECANCELED) return error;  // the lease of another, or lost
    if (pause(wait, stop)) return ECANCELED;
    // The other evictor may have made the room that we wanted.
    if (!request.shrink && has_room_after(generation, request.least)) return 0;
    wait = std::min<std::chrono::milliseconds>(wait * 2, 250ms);
  }
}

int SpaceKeeper::run_pass(const Request& request, std::stop_token stop) {
  std::uint64_t unseen = 0;
  {
    std::lock_guard lock(grant_mutex_);
    int error = evictor_.begin();
    if (error == ENOENT) {  // the directory is gone
      error = maker_.make(layout_.base());
      if (error == 0) error = evictor_.begin();
    }
    if (error != 0) return error;
    remaining_ = 0;  // a new base begins: what we have not used is not in it
    unseen = unseen_.load();
    freed_ = 0;
    added_ = 0;
  }
  int error = evictor_.count(stop);
  if (error == 0) {
    error = evictor_.trim({request.room, request.least, request.shrink, unseen}, stop);
  }
  if (error == 0) error = evictor_.publish(unseen);
  if (error != 0) {
    evictor_.abandon();
    return error == ENOENT ? ECANCELED : error;  // the directory has vanished: once more
  }
  counted_entries_ = static_cast<std::int64_t>(evictor_.entries());
  remember(evictor_.published());
  return evictor_.is_stuck() ? ENOSPC : 0;
}

bool SpaceKeeper::has_room_after(std::uint64_t generation, std::uint64_t room) {
  bool has_room = false;
  const int error = update_state(Clock::now() + state_patience, [&](DirectoryState& state) {
    has_room = state.counted && state.generation != generation &&
               state.room() >= std::min(room, state.capacity());
  });
  return error == 0 && has_room;
}

// True when the keeper is to stop.
bool SpaceKeeper::pause(std::chrono::milliseconds time, std::stop_token stop) {
  std::unique_lock lock(request_mutex_);
  changed_.wait_for(lock, stop, time, [] { return false; });
  return stop.stop_requested();
}

}  // namespace vitrove::file
