// Collectives: what ranks of one tensor-parallel group say to each other (design section 6).
//
// Two operations are enough for rank agreement. Whoever calls them keeps the order: the n-th call
// of one rank meets the n-th call of every other. RankAgreement (rank_agreement.h) does, from one
// thread; nobody else may use the object meanwhile, but for close().
//
// Three kinds: a single rank, callbacks for hosts that bring their own process group, and Gloo over
// TCP (gloo_collectives.h, a library of its own).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace vitrove {

class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // What rank 0 has in `bytes` stands in everybody's `bytes` afterwards; the sizes are equal.
  // Throws Error{deadline_exceeded} when the time is up, Error{unavailable} when a rank is gone.
  // After either, the group is of no more use: every later call throws.
  virtual void broadcast(std::span<std::byte> bytes, std::chrono::milliseconds timeout) = 0;

  // Each value becomes the least that any rank had in its place. Throws like broadcast().
  virtual void all_reduce_min(std::span<std::int64_t> values,
                              std::chrono::milliseconds timeout) = 0;

  // This rank leaves: the others' calls should fail at once instead of by timeout. From any thread.
  virtual void close() noexcept {}
};

// The group of one: nothing to agree about.
std::unique_ptr<Collectives> make_single_rank();

// A host's own process group. The callbacks are called from one thread that is none of the host's,
// so the group must be one that nobody else uses (with PyTorch: a `new_group` of its own on the
// gloo backend). They must honour the timeout; whatever they throw means that the group has failed.
struct CollectiveCallbacks {
  int rank = 0;
  int size = 1;
  std::function<void(std::span<std::byte>, std::chrono::milliseconds)> broadcast;  // from rank 0
  std::function<void(std::span<std::int64_t>, std::chrono::milliseconds)> all_reduce_min;
  std::function<void()> close;  // may be empty
};

// Throws Error{invalid_argument} when the rank is outside the group or a callback is missing.
std::unique_ptr<Collectives> make_callback_collectives(CollectiveCallbacks callbacks);

}  // namespace vitrove
