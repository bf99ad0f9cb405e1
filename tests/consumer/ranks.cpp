// Ranks of a host of its own, over Gloo: here two threads, elsewhere as many processes. Rank 0 has
// one of two items, and both are told the same.
//
//   ranks DIRECTORY      an empty directory, where the ranks find each other
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vitrove/embedding_cache_controller.h"
#include "vitrove/gloo_collectives.h"
#include "vitrove/rank_agreement.h"

namespace {

constexpr std::uint32_t tokens = 4;

vitrove::ValueExpectation expectation(const std::string& content) {
  vitrove::KeyParts parts;
  parts.content = vitrove::sha256(content);
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

void encode(vitrove::EmbeddingCacheController& cache, const vitrove::ValueExpectation& item) {
  auto acquired = cache.acquire(std::span(&item, 1), {});
  const std::vector<float> rows(std::size_t{tokens} * item.dim, 0.5F);
  std::get<vitrove::FillTicket>(acquired.front())
      .publish({.bytes = std::as_bytes(std::span(rows)), .rows = tokens, .side = {}});
}

std::vector<bool> run(int rank, const std::filesystem::path& directory) {
  vitrove::GlooOptions gloo;
  gloo.rank = rank;
  gloo.size = 2;
  gloo.directory = directory;
  auto collectives = vitrove::make_gloo_collectives(gloo);

  const auto cached = expectation("cached");
  constexpr std::uint64_t asked_for = 16 << 20;  // by the operator, for all ranks together
  vitrove::ControllerOptions pool;
  pool.pool.pool_bytes = vitrove::rank_pool_bytes(asked_for, rank, gloo.size, false);
  vitrove::EmbeddingCacheController cache(pool, {});
  if (rank == 0) encode(cache, cached);

  vitrove::RankOptions options;
  options.modalities = {cached};  // what all images of this host are like
  options.pool_bytes = asked_for;
  vitrove::RankAgreement agreement(std::move(collectives),
                                   rank == 0 ? vitrove::make_rank_source(cache) : nullptr, options);
  const std::vector<vitrove::EmbeddingKey> keys{cached.key, expectation("new").key};
  agreement.prefetch("request", keys, std::vector<std::uint32_t>{tokens, tokens},
                     vitrove::Modality::image);
  return agreement.wait("request").hits;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const std::filesystem::path directory = words[1];
  auto other = std::async(std::launch::async, run, 1, directory);
  const std::vector<bool> hits = run(0, directory);
  const bool good = hits == std::vector<bool>{true, false} && other.get() == hits;
  std::puts(good ? "ranks: one hit, one miss, told alike" : "ranks: FAILED");
  return good ? 0 : 1;
}
