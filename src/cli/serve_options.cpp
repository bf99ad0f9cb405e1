#include "cli/serve_options.h"

#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "vitrove/eviction_policy.h"

namespace vitrove::cli {
namespace {

std::string joined(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

WritePolicy parse_write_policy(std::string_view text) {
  for (const auto policy : {WritePolicy::behind, WritePolicy::never}) {
    if (text == to_string(policy)) return policy;
  }
  return WritePolicy::through;
}

}  // namespace

void add_model_options(CLI::App& app, ServerConfig& config) {
  const auto* group = "Model";
  app.add_option("--encoder", config.encoder,
                 "model directory (DIR or onnx:DIR), or stub:dim=64,tokens=16,seed=1 for tests")
      ->required()
      ->group(group);
  app.add_option("--execution-provider", config.execution_provider,
                 "ONNX Runtime execution provider: cpu, cuda, ...")
      ->capture_default_str()
      ->group(group);
  app.add_option("--encoder-threads", config.encoder_threads,
                 "threads of the encoder; 0: as many as cores")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group(group);
  app.add_option("--mm-process-config", config.mm_process_config,
                 R"(defaults of mm_processor_kwargs as JSON: {"image": {"max_pixels": 1048576}})")
      ->group(group);
  app.add_option("--max-processed-pixels", config.max_processed_pixels,
                 "height times width of a picture or frame as the model sees it: the bound for "
                 "requests and defaults; 0: what the model's own configuration allows")
      ->capture_default_str()
      ->check(not_negative)
      ->group(group);
  app.add_option("--max-processed-clip-pixels", config.max_processed_clip_pixels,
                 "the same of all frames of a clip together")
      ->capture_default_str()
      ->check(not_negative)
      ->group(group);
  app.add_option("--max-processed-seconds", config.max_processed_seconds,
                 "chunk_length of sounds, likewise")
      ->capture_default_str()
      ->check(not_negative)
      ->group(group);
  app.add_option("--max-batch-size", config.max_batch_size, "items in one run of the encoder")
      ->capture_default_str()
      ->check(CLI::Range(1U, 4096U))
      ->group(group);
  app.add_option("--max-batch-patches", config.max_batch_patches,
                 "patches of all items in one run, for models that take grids; a larger item runs "
                 "alone")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32))
      ->group(group);
  add_duration(app, "--max-batch-wait", config.max_batch_wait,
               "how long the first item of a batch waits for more")
      ->group(group);
}

void add_cache_options(CLI::App& app, ServerConfig& config) {
  const auto* group = "Cache";
  app.add_option("--store", config.stores,
                 "where embeddings are shared, nearest first, repeatable; 'none' turns sharing off "
                 "(default: a file store in /var/lib/vitrove as root, else in "
                 "$XDG_CACHE_HOME/vitrove)")
      ->type_name("URL")
      ->group(group);
  app.add_flag("--enable-mm-global-cache", config.enable_mm_global_cache,
               "SGLang's spelling of a store; alone it means mooncake")
      ->group(group);
  app.add_option("--mm-global-cache-backend", config.mm_global_cache_backend,
                 "SGLang's spelling: the backend's name")
      ->type_name("NAME")
      ->group(group);
  add_bytes(app, "--pool-size", config.pool_size, "host memory for embeddings; 0: no pool")
      ->group(group);
  add_bytes(app, "--page-size", config.page_size, "page of the pool, a power of two")->group(group);
  app.add_option("--eviction-policy", config.eviction_policy,
                 "which entry goes first: " + joined(eviction_policies()))
      ->capture_default_str()
      ->group(group);
  app.add_option("--modality-share", config.modality_shares,
                 "least and most part of the pool that a modality may hold, repeatable: "
                 "image=0.2:0.8; a part left out is 0 or 1")
      ->type_name("MODALITY=LEAST:MOST")
      ->group(group);
  app.add_flag(
         "--no-eviction", [&config](std::int64_t) { config.enable_eviction = false; },
         "never evict: what does not fit is returned uncached")
      ->group(group);
  app.add_option("--max-eviction-batch", config.max_eviction_batch,
                 "entries evicted before others get a turn at the lock")
      ->capture_default_str()
      ->check(CLI::Range(1U, std::numeric_limits<std::uint32_t>::max()))
      ->group(group);
  app.add_flag("--pin-memory", config.pin_memory,
               "lock the pool in memory, and register it with CUDA where that is installed")
      ->group(group);
  app.add_flag("--huge-pages", config.huge_pages, "ask for huge pages")->group(group);
  app.add_option("--numa-node", config.numa_node, "lay the pool on this NUMA node")
      ->type_name("N")
      ->group(group);
  add_duration(app, "--store-timeout", config.store_timeout,
               "what a lookup over all stores may take, plus its bytes over --store-min-bandwidth")
      ->group(group);
  add_rate(app, "--store-min-bandwidth", config.store_min_bandwidth,
           "slowest transfer that is not a fault")
      ->group(group);
  app.add_flag(
         "--no-claims", [&config](std::int64_t) { config.claims = false; },
         "do not ask the store who encodes: servers that share it may encode the same at once")
      ->group(group);
  app.add_option_function<std::string>(
         "--write-policy",
         [&config](const std::string& text) { config.write_policy = parse_write_policy(text); },
         "through: what was encoded is put to the stores at once; behind: after "
         "--write-behind-delay; never: stores are only read")
      ->check(CLI::IsMember({"through", "behind", "never"}))
      ->default_str("through")
      ->group(group);
  add_duration(app, "--write-behind-delay", config.write_behind_delay,
               "how long a put waits with --write-policy behind, at most")
      ->group(group);
  app.add_option("--put-after-uses", config.put_after_uses,
                 "uses before an embedding is put; its encode is the first")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1'000'000U))
      ->group(group);
  app.add_flag("--skip-cheap-puts", config.skip_cheap_puts,
               "do not put across a network what is cheaper to encode again than to fetch")
      ->group(group);
  app.add_option("--epoch", config.epoch, "raise it to abandon everything written so far")
      ->capture_default_str()
      ->check(not_negative)
      ->group(group);
}

void add_media_options(CLI::App& app, ServerConfig& config) {
  const auto* group = "Media";
  app.add_option("--allowed-media-domains", config.allowed_media_domains,
                 "hosts that media may be fetched from, repeatable; '.example.com' takes "
                 "subdomains; default: all public hosts")
      ->type_name("HOST")
      ->group(group);
  app.add_flag("--allow-private-media", config.allow_private_media,
               "also fetch from loopback, private and link-local addresses")
      ->group(group);
  app.add_option("--allowed-local-media-path", config.allowed_local_media_path,
                 "directory whose files file: URLs may name; default: none")
      ->type_name("DIR")
      ->group(group);
  add_duration(app, "--fetch-timeout", config.fetch_timeout, "fetching one item, in all")
      ->group(group);
  add_bytes(app, "--max-item-bytes", config.max_item_bytes, "one item as received")->group(group);
  app.add_option("--max-image-pixels", config.max_image_pixels, "width times height")
      ->capture_default_str()
      ->check(above_zero)
      ->group(group);
  app.add_option("--max-video-pixels", config.max_video_pixels, "width times height of a frame")
      ->capture_default_str()
      ->check(above_zero)
      ->group(group);
  app.add_option("--max-video-frames", config.max_video_frames, "frames taken of one clip")
      ->capture_default_str()
      ->check(CLI::Range(1U, 4096U))
      ->group(group);
  app.add_option("--max-video-seconds", config.max_video_seconds, "length of one clip")
      ->capture_default_str()
      ->check(above_zero)
      ->group(group);
  app.add_option("--max-audio-seconds", config.max_audio_seconds, "length of one sound")
      ->capture_default_str()
      ->check(above_zero)
      ->group(group);
  app.add_option("--max-audio-samples", config.max_audio_samples,
                 "samples of one sound as they are in the file, over all channels")
      ->capture_default_str()
      ->check(above_zero)
      ->group(group);
  add_bytes(app, "--max-decode-bytes", config.max_decode_bytes,
            "media being decoded and tensors that wait for the encoder, over all requests; what "
            "finds no room waits")
      ->group(group);
  add_bytes(app, "--max-request-bytes", config.max_request_bytes,
            "all items of one request together, as received")
      ->group(group);
  app.add_option("--max-items", config.max_items, "items in one request")
      ->capture_default_str()
      ->check(CLI::Range(1U, 65536U))
      ->group(group);
  app.add_flag("--trust-client-digests", config.trust_client_digests,
               "let clients look items up by digest alone")
      ->group(group);
}

void add_server_options(CLI::App& app, ServerConfig& config) {
  const auto* group = "Server";
  app.add_option("--host", config.host, "address to listen on")
      ->capture_default_str()
      ->group(group);
  app.add_option("--port", config.port, "port to listen on; 0: any free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535))
      ->group(group);
  app.add_option("--api-key", config.api_keys, "key that clients must send as a Bearer token")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--tenant-keys", config.tenant_keys_file,
                 "file of lines 'key tenant': each tenant has embeddings of its own")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--admin-key", config.admin_key, "key for /flush, /reload, /stats and DELETE")
      ->type_name("KEY")
      ->group(group);
  app.add_option("--max-queue", config.max_queue, "requests waiting; beyond it 429")
      ->capture_default_str()
      ->group(group);
  app.add_option("--max-connections", config.max_connections, "connections open at a time")
      ->capture_default_str()
      ->group(group);
  add_bytes(app, "--max-body-bytes", config.max_body_bytes, "one request's body")->group(group);
  add_bytes(
      app, "--max-inflight-bytes", config.max_inflight_bytes,
      "bodies held at a time, media fetched, and replies copied for slow readers: each so much")
      ->group(group);
  add_duration(app, "--request-timeout", config.request_timeout,
               "from the request to the first byte of its reply")
      ->group(group);
  add_duration(app, "--send-stall-timeout", config.send_stall_timeout,
               "a reply of which less than 256 bytes a second arrive for so long is given up")
      ->group(group);
  add_duration(app, "--stall-timeout", config.stall_timeout,
               "a batch that runs longer makes /ready answer 503")
      ->group(group);
  add_duration(app, "--drain-timeout", config.drain_timeout,
               "after SIGTERM: for running requests and queued puts")
      ->group(group);
  add_duration(app, "--drain-delay", config.drain_delay,
               "after SIGTERM: /ready is 503 for so long before the listener closes")
      ->group(group);
  app.add_option("--service-threads", config.service_threads,
                 "requests in progress; 0: max(8, 4 x cores)")
      ->capture_default_str()
      ->check(CLI::Range(0U, 4096U))
      ->group(group);
  app.add_option("--media-threads", config.media_threads,
                 "requests that wait for http(s): or file: media at a time")
      ->capture_default_str()
      ->check(CLI::Range(1U, 4096U))
      ->group(group);
  app.add_option("--decode-threads", config.decode_threads,
                 "pictures decoded at a time; 0: cores, at least 2")
      ->capture_default_str()
      ->check(CLI::Range(0U, 4096U))
      ->group(group);
  app.add_option("--io-threads", config.io_threads,
                 "threads that do HTTP and read the JSON of requests")
      ->capture_default_str()
      ->check(CLI::Range(1U, 64U))
      ->group(group);
}

void add_log_options(CLI::App& app, ServerConfig& config) {
  const auto* group = "Logs";
  app.add_option("--log-level", config.log_level,
                 "trace, debug, info, warning, error, critical, off")
      ->capture_default_str()
      ->check(CLI::IsMember({"trace", "debug", "info", "warning", "error", "critical", "off"}))
      ->group(group);
  app.add_option_function<std::string>(
         "--log-format",
         [&config](const std::string& text) {
           config.log_format = text == "json" ? LogFormat::json : LogFormat::text;
         },
         "text or json, one line a message on standard error")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text")
      ->group(group);
}

}  // namespace vitrove::cli
