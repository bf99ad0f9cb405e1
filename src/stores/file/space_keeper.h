// Keeps a directory within its capacity: hands out room to puts, and runs the evictor in the
// background when room gets scarce. See file_store.h for what is promised.
//
// Room is granted in three steps, so that every byte is counted at least once: reserve() notes it
// in the state file before anything is written; became_visible() says that a count would now see
// the file; keep() says that the file stays. A grant that is not kept gives its room back.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "stores/file/directory_maker.h"
#include "stores/file/directory_state.h"
#include "stores/file/evictor.h"
#include "stores/file/fault_log.h"
#include "stores/file/patient_mutex.h"
#include "vitrove/file_store.h"

namespace vitrove::file {

class SpaceKeeper {
 public:
  // Starts the background thread, unless for a guest. `layout`, `maker` and `faults` outlive the
  // keeper.
  SpaceKeeper(const Layout& layout, DirectoryMaker& maker, FaultLog& faults,
              const FileStoreOptions& options);
  ~SpaceKeeper();
  SpaceKeeper(const SpaceKeeper&) = delete;
  SpaceKeeper& operator=(const SpaceKeeper&) = delete;

  class Grant {
   public:
    Grant() = default;
    Grant(Grant&& other) noexcept
        : keeper_(std::exchange(other.keeper_, nullptr)),
          bytes_(other.bytes_),
          is_visible_(other.is_visible_) {}
    Grant& operator=(Grant&&) = delete;
    ~Grant();
    void became_visible();
    void keep();

   private:
    friend class SpaceKeeper;
    Grant(SpaceKeeper* keeper, std::uint64_t bytes) : keeper_(keeper), bytes_(bytes) {}
    SpaceKeeper* keeper_ = nullptr;
    std::uint64_t bytes_ = 0;
    bool is_visible_ = false;
  };

  // Room for a value. Waits for a count or an eviction when it has to, as long as the context
  // allows.
  std::pair<StoreResult, Grant> reserve(std::uint64_t value_bytes, const StoreContext& context);

  // What became of files here, other than by the evictor.
  void note_added() { ++added_; }
  void note_removed(std::uint64_t bytes);
  void note_replaced(std::uint64_t old_bytes);
  // The file system is full, though the capacity is not reached: make some room for others.
  void note_space_ran_out();

  const ProcessIdentity& identity() const { return self_; }
  StoreHealth health() const;

  // Whether the directory can be used, found out at once: 0 or errno.
  int probe();

 private:
  enum class Answer { granted, refused, needs_pass };

  std::pair<Answer, StoreResult> try_reserve(std::uint64_t bytes, const StoreContext& context);
  int update_state(std::chrono::steady_clock::time_point deadline,
                   const std::function<void(DirectoryState&)>& change);
  void remember(const DirectoryState& state);
  StoreResult wait_for_pass(std::uint64_t room, const StoreContext& context);
  bool wait_while_stuck(std::chrono::steady_clock::time_point end_of_patience,
                        const StoreContext& context);
  StoreHealth health_as_guest() const;
  void ask_for_pass();
  void give_back(std::uint64_t bytes, bool was_visible);
  void sign_out();

  // The background thread.
  void run(std::stop_token stop) noexcept;
  struct Request {
    std::uint64_t ticket = 0;
    std::uint64_t room = 0;   // to make
    std::uint64_t least = 0;  // the largest put that waits
    bool shrink = false;
    bool is_new = false;
  };
  void serve_requests(std::stop_token stop);
  Request wait_for_request(std::chrono::milliseconds patience, std::stop_token stop);
  int start();
  void complete(const Request& request, int error);
  int make_room(const Request& request, std::stop_token stop);
  int run_pass(const Request& request, std::stop_token stop);
  bool has_room_after(std::uint64_t generation, std::uint64_t room);
  bool pause(std::chrono::milliseconds time, std::stop_token stop);

  const Layout& layout_;
  DirectoryMaker& maker_;
  FaultLog& faults_;
  const FileStoreOptions options_;
  const ProcessIdentity self_;
  const StateFile state_file_;
  Evictor evictor_;

  // Held while the state file is changed on behalf of puts.
  PatientMutex grant_mutex_;
  std::uint64_t grant_generation_ = 0;       // of the count after which remaining_ was granted
  std::atomic<std::uint64_t> remaining_{0};  // granted, and not used yet; changed under the mutex
  std::atomic<std::uint64_t> unseen_{0};     // in use, but not in a file that a count would see

  // As of the last look at the state file; for health().
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> capacity_;
  std::atomic<std::uint64_t> freed_{0};  // by removals since the last count; counted by the next
  std::atomic<std::int64_t> counted_entries_{-1};  // by our last count; -1 before it
  std::atomic<std::int64_t> added_{0};             // by us since then

  std::atomic<std::uint64_t> probes_{0};

  std::mutex request_mutex_;
  std::condition_variable_any changed_;
  std::uint64_t requested_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t wanted_by_all_ = 0;  // room that puts are waiting for, in all and the largest
  std::uint64_t wanted_by_one_ = 0;
  bool wants_shrinking_ = false;
  int pass_error_ = 0;
  std::chrono::steady_clock::time_point last_shrink_{};

  std::jthread thread_;  // last: stops before the rest goes
};

}  // namespace vitrove::file
