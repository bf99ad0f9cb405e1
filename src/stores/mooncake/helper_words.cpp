// What a helper says, and what follows from it.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "stores/mooncake/helper_process.h"

namespace vitrove::mooncake {
namespace {

// Of a turn, so that a helper that never stops talking keeps nobody from anything.
constexpr int frames_a_turn = 256;

bool is_rpc_failure(const wire::Answer& answer) {
  return answer.code == -900 || answer.code == -901;
}

// An object whatever came; what is missing reads as its default.
nlohmann::json parse_object(const wire::Payload& payload) {
  auto json = nlohmann::json::parse(reinterpret_cast<const char*>(payload.data()),
                                    reinterpret_cast<const char*>(payload.data() + payload.size()),
                                    nullptr, false);
  return json.is_object() ? json : nlohmann::json::object();
}

std::string text_of(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag_of(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

void HelperProcess::read_frames(Run& run) {
  HelperLink::Frame frame;
  run.has_more = false;
  const HelperLink::Turn turn = link_.take_turn();
  if (!turn) return;
  for (int frames = 0; run.ended.empty(); ++frames) {
    if (frames == frames_a_turn) {
      run.has_more = true;  // perhaps read already, so that poll() tells nothing of it
      return;
    }
    switch (link_.read(frame)) {
      case HelperLink::Read::frame:
        handle(run, frame.header, frame.payload);
        break;
      case HelperLink::Read::nothing:
        return;
      case HelperLink::Read::closed:
        run.ended = "it went away";
        return;
      case HelperLink::Read::nonsense:
        run.ended = "it does not keep to the protocol";
        return;
    }
  }
}

// By a caller: until his own answer is there, and what came with it, or much else. Whatever is more
// than an answer is the supervisor's affair, and so are the helper's end and a want of memory.
void HelperProcess::read_answers(std::uint64_t call) noexcept {
  HelperLink::Loan loan = link_.borrow();
  HelperLink::Frame frame;
  bool is_there = loan && calls_.is_done(call);
  for (int frames = 0; loan && frames < frames_a_turn; ++frames) {
    try {
      const auto read = is_there ? loan.read_on(frame) : loan.wait_for(frame);
      if (read != HelperLink::Read::frame) return;
    } catch (const std::exception&) {
      return;
    }
    if (!take_answer(frame)) {
      loan.leave(std::move(frame));
      return;
    }
    is_there = is_there || frame.header.call == call;
  }
}

bool HelperProcess::take_answer(const HelperLink::Frame& frame) noexcept {
  if (frame.header.type != wire::Type::answer || (frame.header.call & region_call) != 0) {
    return false;
  }
  try {
    auto answers = wire::decode_answers(frame.payload);
    if (!answers || std::ranges::any_of(*answers, is_rpc_failure)) return false;
    return calls_.answer(frame.header.call, *std::move(answers));
  } catch (const std::exception&) {
    return false;
  }
}

void HelperProcess::handle(Run& run, const wire::Header& header, const wire::Payload& payload) {
  switch (header.type) {
    case wire::Type::started:
      handle_started(run, payload);
      return;
    case wire::Type::state:
      handle_state(run, payload);
      return;
    case wire::Type::answer:
      handle_answer(run, header.call, payload);
      return;
    default:
      run.ended = "it does not keep to the protocol";
  }
}

void HelperProcess::handle_started(Run& run, const wire::Payload& payload) {
  const auto json = parse_object(payload);
  if (!flag_of(json, "ok")) {
    run.ended = text_of(json, "detail");
    if (run.ended.empty()) run.ended = "it could not load Mooncake";
    return;
  }
  run.started = true;
  run.patience = Clock::time_point::max();  // a master may be away for ever
  std::lock_guard lock(mutex_);
  provider_ = text_of(json, "provider");
  many_runs_ = flag_of(json, "many_runs");
  loaded_ = true;
  for (auto& [number, region] : regions_) offer(number, region);
}

void HelperProcess::handle_state(Run& run, const wire::Payload& payload) {
  const auto json = parse_object(payload);
  if (!flag_of(json, "ok") || !run.asked) {
    run.ended = text_of(json, "detail");
    if (run.ended.empty()) run.ended = "its set-up failed";
    return;
  }
  run.patience = Clock::time_point::max();
  run.ready_since = Clock::now();
  const Report now = report();
  logger()->info("mooncake store: ready, master {}, through {} (process {})", options_.master,
                 now.provider, now.pid);
  set_phase(Phase::ready, "ready");
}

void HelperProcess::handle_region(Run& run, std::uint32_t number,
                                  const std::vector<wire::Answer>& answers) {
  std::lock_guard lock(mutex_);
  const auto found = regions_.find(number);
  if (found == regions_.end()) return;
  Region& region = found->second;
  region.usable = answers.size() == 1 && answers.front().code == 0;
  region.refused = !region.usable;
  if (region.usable) return;
  std::string what = "it refuses " + std::to_string(region.bytes) + " bytes of memory";
  if (answers.size() == 1) what += " with code " + std::to_string(answers.front().code);
  logger()->warn("mooncake store: {}", what);
  if (region.need == Need::required) run.ended = what + " (is RLIMIT_MEMLOCK too low for RDMA?)";
}

void HelperProcess::handle_answer(Run& run, std::uint64_t call, const wire::Payload& payload) {
  auto answers = wire::decode_answers(payload);
  if (!answers) {
    run.ended = "it does not keep to the protocol";
    return;
  }
  if ((call & region_call) != 0) {
    handle_region(run, static_cast<std::uint32_t>(call & ~region_call), *answers);
    return;
  }
  const bool lost = std::ranges::any_of(*answers, is_rpc_failure);
  if (!calls_.answer(call, *std::move(answers))) {
    run.ended = "it does not keep to the protocol";
    return;
  }
  if (!lost) return;
  {
    std::lock_guard lock(mutex_);
    if (phase_ != Phase::ready) return;
    phase_ = Phase::master_lost;
    detail_ = "the master at " + options_.master + " does not answer";
  }
  run.next_probe = Clock::now();
}

}  // namespace vitrove::mooncake
