#include "server/server_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/environment.h"
#include "vitrove/error.h"
#include "vitrove/eviction_policy.h"

namespace vitrove {
namespace {

// Each has a time in the side data, which is bounded.
constexpr std::uint32_t most_timed_frames = 4096;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

std::string default_store_url() {
  if (geteuid() == 0) return "file:///var/lib/vitrove";
  std::filesystem::path cache = environment("XDG_CACHE_HOME").value_or("");
  if (!cache.is_absolute()) {
    const std::filesystem::path home = environment("HOME").value_or("");
    if (!home.is_absolute()) {
      refuse("no default store: neither XDG_CACHE_HOME nor HOME is set; give --store");
    }
    cache = home / ".cache";
  }
  return "file://" + (cache / "vitrove").string();
}

// SGLang's spellings: the switch alone means mooncake, whose address is in MOONCAKE_CONFIG_PATH.
std::vector<std::string> global_cache_urls(const ServerConfig& config) {
  if (!config.stores.empty()) {
    refuse("--store and --enable-mm-global-cache exclude each other: give one of them");
  }
  const std::string& name = config.mm_global_cache_backend;
  if (name == "file") return {default_store_url()};  // which needs a directory
  if (!name.empty() && name != "mooncake") return {name};
  if (environment("MOONCAKE_CONFIG_PATH").value_or("").empty()) {
    refuse(
        "--enable-mm-global-cache with mooncake needs MOONCAKE_CONFIG_PATH, or use --store "
        "mooncake://HOST:PORT");
  }
  return {"mooncake"};
}

void check_sizes(const ServerConfig& config) {
  if (config.max_items == 0) refuse("--max-items must be at least 1");
  if (config.max_item_bytes == 0) refuse("--max-item-bytes must be at least 1");
  if (config.max_image_pixels == 0) refuse("--max-image-pixels must be at least 1");
  if (config.max_video_pixels == 0) refuse("--max-video-pixels must be at least 1");
  if (config.max_video_frames == 0) refuse("--max-video-frames must be at least 1");
  if (config.max_video_frames > most_timed_frames) {
    refuse("--max-video-frames must be at most " + std::to_string(most_timed_frames));
  }
  if (config.max_video_seconds == 0) refuse("--max-video-seconds must be at least 1");
  if (config.max_audio_seconds == 0) refuse("--max-audio-seconds must be at least 1");
  if (config.max_audio_samples == 0) refuse("--max-audio-samples must be at least 1");
  if (config.max_decode_bytes < 1024) refuse("--max-decode-bytes must be at least 1KiB");
  if (config.max_request_bytes == 0) refuse("--max-request-bytes must be at least 1");
  if (config.max_batch_size == 0) refuse("--max-batch-size must be at least 1");
  if (config.max_batch_patches == 0) refuse("--max-batch-patches must be at least 1");
  if (config.max_body_bytes < 1024) refuse("--max-body-bytes must be at least 1KiB");
  if (config.max_inflight_bytes < 1024) refuse("--max-inflight-bytes must be at least 1KiB");
  if (config.max_connections == 0) refuse("--max-connections must be at least 1");
  if (config.io_threads == 0) refuse("--io-threads must be at least 1");
}

// Deadlines are counted in nanoseconds from now, which overflows within a few hundred years.
void check_longest(const ServerConfig& config) {
  constexpr std::chrono::hours longest{24 * 365};
  const std::pair<std::string_view, std::chrono::microseconds> durations[] = {
      {"--max-batch-wait", config.max_batch_wait},
      {"--store-timeout", config.store_timeout},
      {"--fetch-timeout", config.fetch_timeout},
      {"--request-timeout", config.request_timeout},
      {"--send-stall-timeout", config.send_stall_timeout},
      {"--stall-timeout", config.stall_timeout},
      {"--write-behind-delay", config.write_behind_delay},
      {"--drain-timeout", config.drain_timeout},
      {"--drain-delay", config.drain_delay}};
  for (const auto& [option, duration] : durations) {
    if (duration > longest) refuse(std::string(option) + " must be at most 365d");
  }
}

void check_times(const ServerConfig& config) {
  using Microseconds = std::chrono::microseconds;
  if (config.request_timeout <= Microseconds::zero()) refuse("--request-timeout must be above 0");
  if (config.send_stall_timeout <= Microseconds::zero()) {
    refuse("--send-stall-timeout must be above 0");
  }
  if (config.fetch_timeout <= Microseconds::zero()) refuse("--fetch-timeout must be above 0");
  if (config.store_timeout <= Microseconds::zero()) refuse("--store-timeout must be above 0");
  if (config.store_min_bandwidth == 0) refuse("--store-min-bandwidth must be above 0");
  check_longest(config);
}

void check_log(const ServerConfig& config) {
  try {
    parse_log_level(config.log_level);
  } catch (const Error& error) {
    refuse(std::string("--log-level: ") + error.what());
  }
}

void check_shares(const ServerConfig& config) {
  try {
    make_eviction_policy(config.eviction_policy, parse_shares(config), config.pool_size);
  } catch (const Error& error) {
    refuse(std::string("--modality-share: ") + error.what());
  }
}

}  // namespace

void check_config(const ServerConfig& config) {
  if (config.encoder.empty()) refuse("--encoder is missing: a model directory or stub:...");
  if (!config.api_keys.empty() && !config.tenant_keys_file.empty()) {
    refuse("--api-key and --tenant-keys exclude each other: give one of them");
  }
  if (!config.mm_global_cache_backend.empty() && !config.enable_mm_global_cache) {
    refuse("--mm-global-cache-backend needs --enable-mm-global-cache");
  }
  const auto policies = eviction_policies();
  if (std::ranges::find(policies, config.eviction_policy) == policies.end()) {
    std::string known;
    for (const auto name : policies) known += (known.empty() ? "" : ", ") + std::string(name);
    refuse("--eviction-policy must be one of " + known);
  }
  check_shares(config);
  check_sizes(config);
  check_times(config);
  check_log(config);
}

std::vector<ModalityShare> parse_shares(const ServerConfig& config) {
  std::vector<ModalityShare> shares;
  shares.reserve(config.modality_shares.size());
  for (const auto& text : config.modality_shares) shares.push_back(parse_modality_share(text));
  return shares;
}

std::vector<std::string> resolve_store_urls(const ServerConfig& config) {
  if (config.enable_mm_global_cache) return global_cache_urls(config);
  if (config.stores.empty()) return {default_store_url()};
  const bool has_none = std::ranges::find(config.stores, "none") != config.stores.end();
  if (!has_none) return config.stores;
  if (config.stores.size() > 1) refuse("--store none excludes other stores");
  return {};
}

}  // namespace vitrove
