// Every option of `vitrove serve` (design section 9), with its default. A plain value: the command
// line, the environment and the TOML file fill it in; check_config() says what is contradictory.
//
// `vitrove encode` without a server uses the same struct and leaves the HTTP half alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "vitrove/embedding_cache_controller.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {

struct ServerConfig {
  // --- where and for whom ---------------------------------------------------------------------
  std::string host = "127.0.0.1";     // --host: an address or a name
  std::uint16_t port = 8090;          // --port: 0 takes any free one
  std::vector<std::string> api_keys;  // --api-key, repeatable: any of them is good
  std::string tenant_keys_file;       // --tenant-keys: lines "key tenant"
  std::string admin_key;              // --admin-key

  // --- model ----------------------------------------------------------------------------------
  std::string encoder;                     // --encoder DIR|onnx:DIR|stub:...
  std::string execution_provider = "cpu";  // --execution-provider
  int encoder_threads = 0;                 // --encoder-threads: 0 = as many as cores
  std::string mm_process_config;           // --mm-process-config JSON
  // What requests may ask for beyond what the model's own preprocessing configuration allows.
  std::uint64_t max_processed_pixels = 0;           // --max-processed-pixels, a picture or frame
  std::uint64_t max_processed_clip_pixels = 0;      // --max-processed-clip-pixels, all frames
  std::uint32_t max_processed_seconds = 0;          // --max-processed-seconds, a sound
  std::uint32_t max_batch_size = 8;                 // --max-batch-size
  std::uint64_t max_batch_patches = 16'384;         // --max-batch-patches
  std::chrono::microseconds max_batch_wait{2'000};  // --max-batch-wait

  // --- cache ----------------------------------------------------------------------------------
  // --store URL, nearest first. Empty: the default file store. {"none"}: no sharing.
  std::vector<std::string> stores;
  bool enable_mm_global_cache = false;               // --enable-mm-global-cache (SGLang's spelling)
  std::string mm_global_cache_backend;               // --mm-global-cache-backend NAME
  std::uint64_t pool_size = std::uint64_t{4} << 30;  // --pool-size: 0 turns the pool off
  std::uint64_t page_size = 64 * 1024;               // --page-size
  std::string eviction_policy = "gdsf";              // --eviction-policy
  bool enable_eviction = true;                       // --no-eviction
  std::uint32_t max_eviction_batch = 100;            // --max-eviction-batch
  bool pin_memory = false;                           // --pin-memory
  bool huge_pages = false;                           // --huge-pages
  std::optional<std::uint32_t> numa_node;            // --numa-node
  std::vector<std::string> modality_shares;          // --modality-share image=0.2:0.8, repeatable
  std::chrono::microseconds store_timeout{200'000};  // --store-timeout
  std::uint64_t store_min_bandwidth = 200'000'000;   // --store-min-bandwidth, bytes a second
  bool claims = true;                                // --no-claims
  WritePolicy write_policy = WritePolicy::through;   // --write-policy through|behind|never
  std::chrono::microseconds write_behind_delay{10'000'000};  // --write-behind-delay
  std::uint32_t put_after_uses = 1;                          // --put-after-uses
  bool skip_cheap_puts = false;                              // --skip-cheap-puts
  std::uint64_t epoch = 0;                                   // --epoch

  // --- media ----------------------------------------------------------------------------------
  std::vector<std::string> allowed_media_domains;  // --allowed-media-domains; empty = all public
  bool allow_private_media = false;                // --allow-private-media
  std::string allowed_local_media_path;            // --allowed-local-media-path; empty = none
  std::chrono::microseconds fetch_timeout{30'000'000};     // --fetch-timeout, an item
  std::uint64_t max_item_bytes = std::uint64_t{64} << 20;  // --max-item-bytes, as received
  std::uint64_t max_image_pixels = 64'000'000;             // --max-image-pixels
  std::uint64_t max_video_pixels = 9'437'184;              // --max-video-pixels, a frame
  std::uint32_t max_video_frames = 768;                    // --max-video-frames, taken of a clip
  std::uint32_t max_video_seconds = 3600;                  // --max-video-seconds
  std::uint32_t max_audio_seconds = 3600;                  // --max-audio-seconds
  std::uint64_t max_audio_samples = 400'000'000;           // --max-audio-samples, as in the file
  // --max-decode-bytes: what all media being decoded, and tensors that wait for the encoder, may
  // take together. The batch that runs holds its tensors once more.
  std::uint64_t max_decode_bytes = std::uint64_t{1} << 30;
  std::uint32_t max_items = 64;  // --max-items, a request
  // --max-request-bytes: all items of a request together, as received
  std::uint64_t max_request_bytes = std::uint64_t{256} << 20;
  bool trust_client_digests = false;  // --trust-client-digests

  // --- limits ---------------------------------------------------------------------------------
  std::uint64_t max_body_bytes = std::uint64_t{256} << 20;  // --max-body-bytes, a request
  // --max-inflight-bytes bounds three sums: request bodies held at a time, media fetched for
  // requests, and replies copied because pins would take more than half of the pool.
  std::uint64_t max_inflight_bytes = std::uint64_t{1} << 30;
  std::uint32_t max_queue = 1024;        // --max-queue: requests waiting; beyond it 429
  std::uint32_t max_connections = 4096;  // --max-connections
  std::uint32_t media_threads = 64;      // --media-threads: requests that wait for media of others
  std::uint32_t service_threads = 0;     // --service-threads: 0 = max(8, 4 x cores)
  std::uint32_t decode_threads = 0;      // --decode-threads: 0 = cores
  std::uint32_t io_threads = 2;          // --io-threads
  std::chrono::microseconds request_timeout{60'000'000};     // --request-timeout, to first byte
  std::chrono::microseconds send_stall_timeout{30'000'000};  // --send-stall-timeout
  // --stall-timeout: a batch that runs longer makes /ready answer 503.
  std::chrono::microseconds stall_timeout{60'000'000};
  std::chrono::microseconds drain_timeout{30'000'000};  // --drain-timeout
  std::chrono::microseconds drain_delay{0};  // --drain-delay: 503 on /ready, still serving

  // --- logs -----------------------------------------------------------------------------------
  std::string log_level = "info";  // --log-level trace|debug|info|warning|error|critical|off
  LogFormat log_format = LogFormat::text;  // --log-format text|json
};

// Throws Error{invalid_argument} with one clear line: contradictory or impossible options.
void check_config(const ServerConfig& config);

// Throws Error{invalid_argument}.
std::vector<ModalityShare> parse_shares(const ServerConfig& config);

// The store URLs that the options mean, nearest first; empty for none. Resolves the default file
// store (/var/lib/vitrove as root, else $XDG_CACHE_HOME/vitrove or ~/.cache/vitrove) and SGLang's
// spellings. Throws Error{invalid_argument}.
std::vector<std::string> resolve_store_urls(const ServerConfig& config);

}  // namespace vitrove
