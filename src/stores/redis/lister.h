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

  StoreResult run();

 private:
  // False when the visitor has seen enough.
  bool list_server(const Fleet::NodePtr& node, StoreResult& result);
  bool visit_page(const Fleet::NodePtr& node, const std::vector<EmbeddingKey>& keys,
                  StoreResult& result);
  std::vector<EmbeddingKey> fresh_keys(const Reply& page);

  Client& client_;
  const std::string prefix_;
  const std::string pattern_;
  const ListOptions options_;
  const Visit& visit_;
  const StoreContext& context_;
  std::unordered_set<EmbeddingKey> seen_;  // SCAN may name a key twice
};

}  // namespace vitrove::redis
