// EncodeService: the encode pipeline without HTTP (design section 1). The server calls it for each
// request; `vitrove encode` calls it in its own process.
//
//   items -> bytes -> identity -> acquire -> claim -> decode -> preprocess -> feature lookup
//         -> batch -> publish -> replies
//
// Promises:
//  - A hit needs no decoding: the key is made from the bytes as received, the resolved parameters
//    and the encoder's fingerprint. The pipeline part of a key is one version for all decoders of
//    the item's modality and not of the sniffed format alone, so that a digest without bytes finds
//    the same key.
//  - Replies are in request order, one an item. Any failing item fails the whole request: the Error
//    names the item, and nothing partial is returned. Items that were encoded stay cached.
//  - A caller that leaves (`cancel`) or runs late (`deadline`) gets Error{cancelled} or
//    Error{deadline_exceeded}; fills that others wait for are handed over.
//  - Threads and queues are bounded. encode() blocks its caller, which must not be an I/O thread.
//  - swap_encoder() is atomic: running requests end with the encoder they began with.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "server/server_config.h"
#include "vitrove/digest.h"
#include "vitrove/embedding_cache_controller.h"
#include "vitrove/embedding_key.h"
#include "vitrove/embedding_store.h"
#include "vitrove/encode_batcher.h"
#include "vitrove/encoder.h"
#include "vitrove/types.h"

namespace vitrove {

// One item of a request: a URL, or bytes, or a digest alone.
struct EncodeItem {
  std::string url;  // data:, http(s):, or file: inside the allowed directory
  // Bytes in the caller's hands (files of `vitrove encode`); `url` is empty then.
  std::shared_ptr<const std::vector<std::byte>> bytes;
  // SHA-256 of the bytes. Beside a URL or bytes it must match (invalid_argument); alone it is
  // looked up and never encoded (not_found, or forbidden without trust_client_digests).
  std::optional<Digest256> digest;
  std::optional<Modality> modality;  // nothing: the encoder's first one
  std::string mm_processor_kwargs;   // a JSON object, or empty
};

// Whether it has to be fetched: from another host, or a file system that may be another's.
bool is_remote(const EncodeItem& item);

struct EncodeRequest {
  std::string req_id;
  std::vector<EncodeItem> items;
  std::string tenant;  // from the authenticated side
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::stop_token cancel;
};

struct EncodedItem {
  EmbeddingKey key;  // the content key asked for, also when the embedding stands under another
  Modality modality = Modality::image;
  Source source = Source::encoded;
  EmbeddingView view;  // pinned until destroyed
};

// Counters only grow, across reloads too. Probes are left out.
struct EncoderTotals {
  std::uint64_t items = 0;
  std::uint64_t batches = 0;
  std::uint64_t failures = 0;
  std::uint64_t busy_us = 0;
  std::uint64_t queued = 0;            // gauge
  std::uint64_t running_since_us = 0;  // gauge: age of the longest-running batch, 0 when idle
};

class EncodeService {
 public:
  // Builds stores, controller and encoder from the options. Throws Error with one clear line.
  static std::unique_ptr<EncodeService> from_config(const ServerConfig& config);

  EncodeService(const ServerConfig& config, std::shared_ptr<EmbeddingCacheController> controller,
                std::shared_ptr<Encoder> encoder);
  ~EncodeService();

  // Throws Error; item() is the index of the item at fault, or -1.
  std::vector<EncodedItem> encode(EncodeRequest request);

  // The short way to one item that is in the pool: fetches nothing, asks no store and waits for
  // nobody, so that it may run on an I/O thread. Nothing when only encode() can tell. Throws Error.
  // It counts as a lookup only by controller().count_hit(), which is for whoever really answers
  // with it: encode() may have to follow, and counts for itself.
  std::optional<EncodedItem> peek_hit(EncodeRequest request);

  // Encodes a made-up picture (or sound), past the cache and left out of the counters. Throws
  // Error.
  void encode_probe(const RequestContext& context);

  // Loads and swaps in another encoder; returns its description. Throws Error: the old one stays.
  EncoderInfo reload(const std::string& spec);
  void swap_encoder(std::shared_ptr<Encoder> encoder);

  EncoderInfo encoder_info() const;
  EncoderTotals encoder_totals() const;
  std::uint64_t media_bytes() const;  // of fetched media, held at the moment
  EmbeddingCacheController& controller();
  const EmbeddingCacheController& controller() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace vitrove
