// Lists the values under a prefix, a page of SCAN at a time. Foreign keys are neither read nor
// reported.
#pragma once

#include <string>
#include <unordered_set>

#include "stores/redis/client.h"

namespace vitrove::redis {

class Lister {
 public:
  using Visit = std::function<bool(const ListedValue&)>;

  Lister(Client& client, std::string prefix, const ListOptions& options, const Visit& visit,
         const StoreContext& context);

  // The first trouble there was. A server of a cluster that fails keeps what the others hold from
  // nobody.
  StoreResult run();

 private:
  StoreResult list_server(const Fleet::NodePtr& node);
  StoreResult visit_page(const Fleet::NodePtr& node, const std::vector<EmbeddingKey>& keys);
  std::vector<EmbeddingKey> fresh_keys(const Reply& page);

  Client& client_;
  const std::string prefix_;
  const std::string pattern_;
  const ListOptions options_;
  const Visit& visit_;
  const StoreContext& context_;
  std::unordered_set<EmbeddingKey> seen_;  // SCAN may name a key twice
  bool has_seen_enough_ = false;           // the visitor
};

}  // namespace vitrove::redis
