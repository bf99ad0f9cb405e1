#include "vitrove/rank_agreement.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "ranks/rank_board.h"
#include "ranks/rank_loader.h"
#include "ranks/rank_sequencer.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

void check(const Collectives* collectives, const RankSource* source, const RankOptions& options) {
  const auto invalid = [](const char* why) { throw Error(ErrorCode::invalid_argument, why); };
  if (collectives == nullptr) invalid("rank agreement needs collectives");
  if (source == nullptr && (collectives->rank() == 0 || options.all_rank_get)) {
    invalid("a rank that loads needs a source");
  }
  if (options.load_timeout.count() <= 0 || options.load_timeout >= options.timeout) {
    invalid("load_timeout must be positive and less than timeout");
  }
  if (options.heartbeat.count() <= 0 || options.heartbeat >= options.timeout) {
    invalid("heartbeat must be positive and less than timeout");
  }
  if (options.pool_bytes && source != nullptr &&
      source->pool_bytes() > rank_pool_bytes(*options.pool_bytes, collectives->rank(),
                                             collectives->size(), options.all_rank_get)) {
    invalid("the pool of this rank is larger than its share of what was asked for");
  }
  if (options.load_threads == 0) invalid("load_threads must not be 0");
}

// Each rank knows its own pool only: without the sum nobody can tell that they take too much (B72).
void say_what_is_not_checked(const Collectives& collectives, const RankSource* source,
                             const RankOptions& options) {
  if (options.pool_bytes || source == nullptr || collectives.size() == 1) return;
  logger()->warn(
      "rank {} of {} has a pool of {} bytes, and its host does not say what was asked for in all "
      "(RankOptions::pool_bytes): whether the ranks together take more is not checked",
      collectives.rank(), collectives.size(), source->pool_bytes());
}

bool is_of_caller(const Error& error) {
  return error.code() == ErrorCode::not_found || error.code() == ErrorCode::invalid_argument ||
         error.code() == ErrorCode::unavailable;
}

}  // namespace

class RankAgreement::Impl {
 public:
  Impl(std::unique_ptr<Collectives> collectives, std::unique_ptr<RankSource> source,
       RankOptions options)
      : options_(std::move(options)),
        leads_(collectives->rank() == 0),
        board_(leads_, options_.load_timeout, options_.timeout + options_.load_timeout),
        loader_(board_, std::move(source), leads_, options_.load_threads),
        sequencer_(std::move(collectives), options_, board_, loader_) {}
  ~Impl() { board_.stop(); }

  // What shows that the ranks have parted ends the group, and is told as such.
  template <typename Call>
  auto guarded(Call call) {
    try {
      return call();
    } catch (const Error& error) {
      if (is_of_caller(error)) throw;
      const std::string reason = error.detail().empty()
                                     ? error.what()
                                     : std::string(error.what()) + " (" + error.detail() + ")";
      sequencer_.fail(reason);
      throw Error(ErrorCode::unavailable, std::string("the rank group has failed: ") + error.what(),
                  error.detail());
    }
  }

  void prefetch(const std::string& req_id, std::vector<ValueExpectation> items) {
    if (req_id.size() > max_request_id_bytes || items.size() > max_request_items) {
      throw Error(ErrorCode::invalid_argument, "a request is too long for rank agreement");
    }
    guarded([&] {
      if (leads_) {
        loader_.enqueue(board_.take_on(req_id, std::move(items), false));
      } else {
        board_.ask(req_id, std::move(items));
      }
    });
  }

  void refuse(const std::string& req_id) {
    if (!leads_) throw Error(ErrorCode::invalid_argument, "only rank 0 can refuse a request");
    if (req_id.size() > max_request_id_bytes) {
      throw Error(ErrorCode::invalid_argument, "a request is too long for rank agreement");
    }
    guarded([&] { board_.take_on(req_id, {}, true); });
  }

  ValueExpectation like(Modality modality) const {
    const auto found =
        std::ranges::find(options_.modalities, modality, &ValueExpectation::modality);
    if (found == options_.modalities.end()) {
      throw Error(ErrorCode::invalid_argument, "rank agreement was not told of this modality");
    }
    return *found;
  }

  RankBoard& board() { return board_; }

 private:
  const RankOptions options_;
  const bool leads_;
  RankBoard board_;
  RankLoader loader_;
  RankSequencer sequencer_;
};

RankAgreement::RankAgreement(std::unique_ptr<Collectives> collectives,
                             std::unique_ptr<RankSource> source, RankOptions options) {
  check(collectives.get(), source.get(), options);
  say_what_is_not_checked(*collectives, source.get(), options);
  impl_ = std::make_unique<Impl>(std::move(collectives), std::move(source), std::move(options));
}

RankAgreement::~RankAgreement() = default;

void RankAgreement::prefetch(const std::string& req_id, std::span<const EmbeddingKey> keys,
                             std::span<const std::uint32_t> expected_tokens, Modality modality) {
  if (keys.size() != expected_tokens.size()) {
    throw Error(ErrorCode::invalid_argument, "keys and expected_tokens differ in length");
  }
  std::vector<ValueExpectation> items(keys.size(), impl_->like(modality));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    items[i].key = keys[i];
    items[i].rows = expected_tokens[i];
  }
  impl_->prefetch(req_id, std::move(items));
}

void RankAgreement::prefetch(const std::string& req_id, std::vector<ValueExpectation> items) {
  impl_->prefetch(req_id, std::move(items));
}

void RankAgreement::refuse(const std::string& req_id) { impl_->refuse(req_id); }

bool RankAgreement::abort(const std::string& req_id) { return impl_->board().abandon(req_id); }

bool RankAgreement::check_prefetch_progress(const std::string& req_id) {
  return impl_->guarded([&] { return impl_->board().progress(req_id).value_or(true); });
}

std::optional<std::vector<bool>> RankAgreement::mask(const std::string& req_id) const {
  return impl_->board().mask(req_id);
}

RankOutcome RankAgreement::take(const std::string& req_id) {
  return impl_->guarded([&] { return impl_->board().take(req_id); });
}

RankOutcome RankAgreement::wait(const std::string& req_id) {
  return impl_->guarded([&] { return impl_->board().wait(req_id); });
}

std::optional<std::string> RankAgreement::failure() const { return impl_->board().failure(); }

}  // namespace vitrove
