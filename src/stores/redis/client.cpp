#include "stores/redis/client.h"

#include <map>

#include "stores/redis/exchange.h"

namespace vitrove::redis {
namespace {

constexpr int max_sends = 5;

// A server with which nothing has moved for so long when a call ran out of time is looked at.
constexpr auto suspicious_silence = std::chrono::milliseconds(100);

void forget_answer(Command& command) {
  command.answered = false;
  command.reply = {};
  command.fault = {};
}

}  // namespace

// What goes to one server. The exchange points into the lease's connection.
struct Client::Batch {
  Fleet::NodePtr node;
  std::vector<Job> jobs;
  Node::Lease lease;
  bool was_used = false;    // the connection, by an earlier call
  bool progressed = false;  // at least one command was answered
};

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
    std::vector<Batch> batches = make_batches(std::move(jobs), use, context);
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

    jobs.clear();
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

// In the order of their servers, so that calls which need several never wait for each other in a
// circle.
std::vector<Client::Batch> Client::make_batches(std::vector<Job> jobs, Use use,
                                                const StoreContext& context) {
  std::map<Endpoint, Batch> by_server;
  for (Job& job : jobs) {
    if (!job.node) job.node = fleet_.node_of(job.command->slot, context, job.command->fault);
    if (!job.node) continue;
    Batch& batch = by_server[job.node->endpoint()];
    batch.node = job.node;
    batch.jobs.push_back(std::move(job));
  }
  std::vector<Batch> batches;
  for (auto& [endpoint, batch] : by_server) {
    Fault fault;
    Node::Lease lease = batch.node->lease(use, context, fault);
    if (!lease) {
      for (Job& job : batch.jobs) job.command->fault = fault;
      fleet_.learn_anew();
      continue;
    }
    const bool was_used = lease.connection().was_used();
    batches.push_back({std::move(batch.node), std::move(batch.jobs), std::move(lease), was_used});
  }
  return batches;
}

// Whether the command has to be sent again.
bool Client::goes_on(Job& job, const Batch& batch, bool follows) {
  Command& command = *job.command;
  if (command.answered) {
    if (!command.reply.is_error() || !fleet_.is_cluster()) return false;
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
  const bool is_worth_it = batch.was_used || batch.progressed;
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
