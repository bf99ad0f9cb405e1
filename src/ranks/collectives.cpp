#include "vitrove/collectives.h"

#include <exception>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

class SingleRank final : public Collectives {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<std::byte> /*bytes*/, std::chrono::milliseconds /*timeout*/) override {}
  void all_reduce_min(std::span<std::int64_t> /*values*/,
                      std::chrono::milliseconds /*timeout*/) override {}
};

// What a host's code throws is not ours to pass on: callers know Error only.
template <typename Call>
void call_host(Call call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCode::unavailable, "the host's collective failed", error.what());
  } catch (...) {
    throw Error(ErrorCode::unavailable, "the host's collective failed");
  }
}

class CallbackCollectives final : public Collectives {
 public:
  explicit CallbackCollectives(CollectiveCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  int rank() const override { return callbacks_.rank; }
  int size() const override { return callbacks_.size; }

  void broadcast(std::span<std::byte> bytes, std::chrono::milliseconds timeout) override {
    call_host([&] { callbacks_.broadcast(bytes, timeout); });
  }
  void all_reduce_min(std::span<std::int64_t> values, std::chrono::milliseconds timeout) override {
    call_host([&] { callbacks_.all_reduce_min(values, timeout); });
  }
  void close() noexcept override {
    if (!callbacks_.close) return;
    try {
      callbacks_.close();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the others then find out by timeout
    }
  }

 private:
  const CollectiveCallbacks callbacks_;
};

}  // namespace

std::unique_ptr<Collectives> make_single_rank() { return std::make_unique<SingleRank>(); }

std::unique_ptr<Collectives> make_callback_collectives(CollectiveCallbacks callbacks) {
  if (callbacks.rank < 0 || callbacks.rank >= callbacks.size) {
    throw Error(ErrorCode::invalid_argument, "the rank is outside the group");
  }
  if (!callbacks.broadcast || !callbacks.all_reduce_min) {
    throw Error(ErrorCode::invalid_argument, "a collective has no callback");
  }
  return std::make_unique<CallbackCollectives>(std::move(callbacks));
}

}  // namespace vitrove
