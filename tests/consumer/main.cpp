// The smallest honest use of the library by a host of its own: a memory store, a controller, one
// miss that the host encodes, one hit that costs nothing.
#include <cstdio>
#include <memory>
#include <vector>

#include "vitrove/embedding_cache_controller.h"
#include "vitrove/embedding_store_factory.h"

namespace {

vitrove::ValueExpectation expectation(const vitrove::Digest256& content) {
  vitrove::KeyParts parts;
  parts.content = content;
  parts.model_fingerprint = vitrove::sha256("weights");
  parts.dim = 8;
  parts.row_meaning = "tokens";
  vitrove::ValueExpectation expected;
  expected.key = vitrove::make_key(parts);
  expected.model_fingerprint = parts.model_fingerprint;
  expected.tenant = vitrove::tenant_digest("");
  expected.dim = parts.dim;
  return expected;
}

bool encode_once_then_hit() {
  auto factory = vitrove::EmbeddingStoreFactory::with_builtins();
  std::shared_ptr<vitrove::EmbeddingStore> store = factory.create_backend("memory:?capacity=16MiB");
  vitrove::ControllerOptions options;
  options.pool.pool_bytes = 16 << 20;
  vitrove::EmbeddingCacheController cache(options, {store});

  const auto item = expectation(vitrove::sha256("a picture"));
  const vitrove::RequestContext context;
  const std::vector<float> rows(4 * 8, 0.5F);

  auto first = cache.acquire(std::span(&item, 1), context);
  auto* ticket = std::get_if<vitrove::FillTicket>(&first.front());
  if (ticket == nullptr) return false;
  ticket->publish({.bytes = std::as_bytes(std::span(rows)), .rows = 4, .side = {}});

  auto second = cache.acquire(std::span(&item, 1), context);
  auto* hit = std::get_if<vitrove::Hit>(&second.front());
  return hit != nullptr && hit->source == vitrove::Source::local && hit->view.rows() == 4 &&
         hit->view.bytes() == rows.size() * sizeof(float);
}

}  // namespace

int main() {
  const bool good = encode_once_then_hit();
  std::puts(good ? "consumer: one encode, one hit" : "consumer: FAILED");
  return good ? 0 : 1;
}
