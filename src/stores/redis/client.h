// Sends commands to the servers of their keys, and to others when these say so.
#pragma once

#include <span>

#include "stores/redis/command.h"
#include "stores/redis/errors.h"
#include "stores/redis/fleet.h"

namespace vitrove::redis {

class Client {
 public:
  explicit Client(std::shared_ptr<const Settings> settings)
      : settings_(settings), fleet_(std::move(settings)) {}

  Fleet& fleet() { return fleet_; }
  const Fleet& fleet() const { return fleet_; }

  // Every command has an answer or a fault afterwards.
  void run(std::span<Command> commands, Use use, const StoreContext& context);
  // The same at one server, wherever the keys belong.
  void run_at(const Fleet::NodePtr& node, std::span<Command> commands, Use use,
              const StoreContext& context);

 private:
  struct Job {
    Command* command;
    Fleet::NodePtr node;  // null: that of the slot
    int sent = 0;
  };
  struct Batch;

  void run_jobs(std::vector<Job> jobs, bool follows, Use use, const StoreContext& context);
  std::vector<Batch> take_batches(std::vector<Job>& jobs, Use use, const StoreContext& context);
  std::vector<std::vector<Job>> sort_by_server(std::vector<Job> jobs, const StoreContext& context);
  static std::vector<Job> take_last(std::vector<Job>& jobs, std::size_t count);
  void share_out(std::vector<Batch>& batches);
  void take_batch(std::vector<Job>& jobs, Node::Lease lease, const Fault& fault,
                  std::vector<Batch>& batches);
  static void note_limit(const Job& job);
  bool goes_on(Job& job, const Batch& batch, bool follows);
  bool follow(Job& job, const Redirect& redirect);

  const std::shared_ptr<const Settings> settings_;
  Fleet fleet_;
};

}  // namespace vitrove::redis
