#include "stores/redis/client.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "stores/batch.h"
#include "stores/net/deadline.h"
#include "stores/redis/exchange.h"

namespace vitrove::redis {
namespace {

constexpr int max_sends = 5;

// A server with which nothing has moved for so long when a call ran out of time is looked at.
constexpr auto suspicious_silence = std::chrono::milliseconds(100);

// A batch of small values comes faster over several connections: a server gives each of them 64 KiB
// a turn (NET_MAX_WRITES_PER_EVENT of Redis), and a turn costs it more than the bytes. So much is
// left to each, less is not worth it; large values keep the server busy over one.
constexpr std::uint64_t bytes_a_line = 256 * 1024;
constexpr std::uint64_t large_value = 512 * 1024;

std::size_t lines_for(std::span<const Command* const> commands) {
  std::uint64_t bytes = 0;
  for (const Command* command : commands) {
    if (command->target_bytes >= large_value) return 1;
    bytes += command->target_bytes;
  }
  return std::clamp<std::size_t>(bytes / bytes_a_line, 1, std::min(most_lines, commands.size()));
}

void forget_answer(Command& command) {
  command.answered = false;
  command.reply = {};
  command.fault = {};
}

}  // namespace

// What goes to one connection. The exchange points into the lease's connection.
struct Client::Batch {
  Fleet::NodePtr node;
  std::vector<Job> jobs;
  Node::Lease lease;
  bool has_waited = false;  // the connection, for this call
  bool progressed = false;  // at least one command was answered
};

std::vector<Client::Job> Client::take_last(std::vector<Job>& jobs, std::size_t count) {
  const auto first = jobs.end() - static_cast<std::ptrdiff_t>(count);
  std::vector<Job> part(std::make_move_iterator(first), std::make_move_iterator(jobs.end()));
  jobs.erase(first, jobs.end());
  return part;
}

void Client::run(std::span<Command> commands, Use use, const StoreContext& context) {
  std::vector<Job> jobs;
  jobs.reserve(commands.size());
  for (Command& command : commands) jobs.push_back({&command, nullptr});
  run_jobs(std::move(jobs), fleet_.is_cluster(), use, context);
}

void Client::run_at(const Fleet::NodePtr& node, std::span<Command> commands, Use use,
                    const StoreContext& context) {
  std::vector<Job> jobs;
  for (Command& command : commands) jobs.push_back({&command, node});
  run_jobs(std::move(jobs), false, use, context);
}

void Client::run_jobs(std::vector<Job> jobs, bool follows, Use use, const StoreContext& context) {
  while (!jobs.empty()) {
    std::vector<Batch> batches = take_batches(jobs, use, context);
    std::vector<std::unique_ptr<Exchange>> exchanges;
    for (Batch& batch : batches) {
      std::vector<Command*> commands;
      for (Job& job : batch.jobs) {
        ++job.sent;
        commands.push_back(job.command);
      }
      exchanges.push_back(
          std::make_unique<Exchange>(batch.lease.connection(), std::move(commands), context));
    }
    drive(exchanges, context, settings_->options.timeout);

    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Exchange& exchange = *exchanges[i];
      if (exchange.state() == Exchange::State::done) batches[i].lease.give_back();
      if (exchange.state() == Exchange::State::stopped &&
          Clock::now() - exchange.last_moved() >= suspicious_silence) {
        batches[i].node->suspect({StoreStatus::timeout, ETIMEDOUT, "the server is silent"});
      }
      batches[i].progressed = batches[i].jobs.front().command->answered;
      for (Job& job : batches[i].jobs) {
        if (goes_on(job, batches[i], follows)) jobs.push_back(std::move(job));
      }
    }
  }
}

std::vector<std::vector<Client::Job>> Client::sort_by_server(std::vector<Job> jobs,
                                                             const StoreContext& context) {
  std::map<Endpoint, std::vector<Job>> by_server;
  for (Job& job : jobs) {
    if (!job.node) job.node = fleet_.node_of(job.command->slot, context, job.command->fault);
    if (job.node) by_server[job.node->endpoint()].push_back(std::move(job));
  }
  std::vector<std::vector<Job>> sorted;
  sorted.reserve(by_server.size());
  for (auto& [endpoint, some] : by_server) sorted.push_back(std::move(some));
  return sorted;
}

// What can be sent without waiting for other callers; else what goes to one of the servers whose
// connections are all in use. The rest stays in `jobs`. Nobody waits for a connection while he
// holds another, so that calls never wait for each other in a circle.
std::vector<Client::Batch> Client::take_batches(std::vector<Job>& jobs, Use use,
                                                const StoreContext& context) {
  std::vector<Batch> batches;
  std::vector<std::vector<Job>> cold;
  for (auto& some : sort_by_server(std::exchange(jobs, {}), context)) {
    take_batch(some, some.front().node->lease_idle(use), {}, batches);
    if (!some.empty()) cold.push_back(std::move(some));
  }
  if (use != Use::write) share_out(batches);
  std::size_t sharers = cold.size() + 1;  // and the exchange: a dial that hangs leaves time for it
  for (auto& some : cold) {
    StoreContext share = context;
    share.deadline = net::share_of(context.deadline, sharers--);
    Fault fault;
    Node::Lease lease = some.front().node->lease_unawaited(use, share, fault);
    take_batch(some, std::move(lease), fault, batches);
  }
  std::erase_if(cold, [](const auto& some) { return some.empty(); });
  if (batches.empty() && !cold.empty()) {
    StoreContext share = context;
    share.deadline = net::share_of(context.deadline, cold.size());
    Fault fault;
    Node::Lease lease = cold.front().front().node->lease(use, share, fault);
    take_batch(cold.front(), std::move(lease), fault, batches);
  }
  for (auto& some : cold) std::ranges::move(some, std::back_inserter(jobs));
  return batches;
}

// Parts of batches of small values go over further connections that rest.
void Client::share_out(std::vector<Batch>& batches) {
  for (std::size_t i = 0, count = batches.size(); i < count; ++i) {
    std::vector<const Command*> commands;
    for (const Job& job : batches[i].jobs) commands.push_back(job.command);
    for (std::size_t lines = lines_for(commands); lines > 1; --lines) {
      Node::Lease spare = batches[i].node->lease_spare();
      if (!spare) break;
      std::vector<Job> part = take_last(batches[i].jobs, batches[i].jobs.size() / lines);
      take_batch(part, std::move(spare), {}, batches);
    }
  }
}

// Takes the jobs when they can be sent, or have failed.
void Client::take_batch(std::vector<Job>& jobs, Node::Lease lease, const Fault& fault,
                        std::vector<Batch>& batches) {
  if (lease) {
    Fleet::NodePtr node = jobs.front().node;
    const bool has_waited = lease.connection().has_waited();
    batches.push_back({std::move(node), std::exchange(jobs, {}), std::move(lease), has_waited});
  } else if (fault) {
    for (Job& job : std::exchange(jobs, {})) job.command->fault = fault;
    fleet_.learn_anew();
  }
}

// The next value as large as one that was refused for its size need not be sent.
void Client::note_limit(const Job& job) {
  const Command& command = *job.command;
  const std::uint64_t bytes = total_bytes(command.payload);
  if (bytes > 0 && fault_of(command.reply).status == StoreStatus::too_large)
    job.node->refused_as_too_large(bytes);
}

// Whether the command has to be sent again.
bool Client::goes_on(Job& job, const Batch& batch, bool follows) {
  Command& command = *job.command;
  if (command.answered) {
    if (!command.reply.is_error()) return false;
    note_limit(job);
    if (!fleet_.is_cluster()) return false;
    const auto redirect = redirect_of(command.reply);
    if (redirect) return follows && follow(job, *redirect);
    // After a failover the old master is a replica, or knows that the cluster is not whole.
    const auto code = command.reply.error_code();
    if (code == "READONLY" || code == "CLUSTERDOWN") fleet_.doubt(job.node->endpoint());
    return false;
  }
  // A connection that waited for use may have been closed meanwhile; others were closed because of
  // a command before this one. Each time one more is answered, or the connection is a new one.
  if (command.fault.status != StoreStatus::unavailable || !command.repeatable) return false;
  const bool is_worth_it = batch.has_waited || batch.progressed;
  if (!is_worth_it || job.sent >= max_sends) return false;
  forget_answer(command);
  return true;
}

bool Client::follow(Job& job, const Redirect& redirect) {
  if (job.sent >= max_sends) return false;
  if (!redirect.is_ask) fleet_.doubt(job.node->endpoint());
  const std::string& host = redirect.host.empty() ? job.node->endpoint().host : redirect.host;
  job.node = fleet_.node_at({host, redirect.port});
  forget_answer(*job.command);
  job.command->asking = redirect.is_ask;
  return true;
}

}  // namespace vitrove::redis
