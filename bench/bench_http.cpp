// The encode server over HTTP.
//
//  - A hit with its embedding (1 MiB) in the reply, against plain Beast sending one static buffer:
//    "hot" asks for one entry again and again, "cold" goes round more entries than the last-level
//    cache holds.
//  - What a picture costs that is in the pool, in a file store, or nowhere.
//  - Throughput when nothing is ever found: cache on against cache off, with the photographs of the
//    demo, and with pictures of 224 pixels that cost next to nothing before the encoder.
//
// Own options: --encoder SPEC for these (default: the sample model where it has been set up,
// else a stub that takes 50 ms an item).
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "../tests/support/png_maker.h"
#include "base/log.h"
#include "harness.h"
#include "http_client.h"
#include "server/encode_server.h"
#include "static_beast_server.h"
#include "vitrove/error.h"

namespace {

using vitrove::EncodeServer;
using vitrove::ServerConfig;
using vitrove::bench::Harness;
using vitrove::bench::http_get;
using vitrove::bench::http_post;
using vitrove::bench::HttpClient;
using vitrove::bench::ratio_at_least;
using vitrove::bench::seconds_of;

constexpr std::size_t mib = 1 << 20;
constexpr std::uint32_t cold_entries = 192;  // of 1 MiB: several times the last-level cache

ServerConfig bench_config(const std::string& encoder) {
  ServerConfig config;
  config.port = 0;
  config.encoder = encoder;
  config.stores = {"none"};
  config.pool_size = std::uint64_t{512} << 20;
  config.log_level = "off";
  return config;
}

struct Server {
  explicit Server(const ServerConfig& config) : server(config) { server.start(); }
  EncodeServer server;
};

std::string encode_body(const std::string& url, const std::string& form) {
  return R"({"mm_items": [")" + url + R"("], "return": ")" + form + R"("})";
}

std::string encode_request(std::uint32_t seed, std::uint32_t side, const std::string& form) {
  const std::string url = vitrove::test::data_url(vitrove::test::png(seed, side, side));
  return http_post("/encode", encode_body(url, form));
}

std::string key_of(EncodeServer& server, std::uint32_t seed, std::uint32_t side) {
  vitrove::EncodeRequest request;
  request.items.resize(1);
  request.items[0].url = vitrove::test::data_url(vitrove::test::png(seed, side, side));
  return server.service().encode(std::move(request)).at(0).key.text();
}

double gigabytes_per_second(HttpClient& client, const std::vector<std::string>& requests,
                            std::size_t rounds) {
  std::size_t bytes = 0;
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      bytes += client.exchange(requests[i % requests.size()]);
    }
  });
  return static_cast<double>(bytes) / 1e9 / seconds;
}

void compare_hits(Harness& harness) {
  if (!harness.wants("http_hit")) return;
  Server ours(bench_config("stub:dim=1024,tokens=256,seed=1"));
  vitrove::bench::StaticBeastServer other(mib, 2);
  HttpClient to_ours(ours.server.port());
  HttpClient to_other(other.port());

  std::vector<std::string> by_key, by_bytes;
  for (std::uint32_t seed = 0; seed < cold_entries; ++seed) {
    by_key.push_back(http_get("/embeddings/" + key_of(ours.server, seed, 28)));
    by_bytes.push_back(encode_request(seed, 28, "safetensors"));
  }
  const std::size_t rounds = 2 * cold_entries;
  const auto compare = [&](const std::string& name, std::vector<std::string> requests,
                           double target) {
    harness.compare(
        {name, "GB/s", "Beast, one static buffer", ratio_at_least(target)},
        [&] { return gigabytes_per_second(to_ours, requests, rounds); },
        [&] { return gigabytes_per_second(to_other, requests, rounds); });
  };
  compare("http_hit_get_1mib_hot", {by_key[0]}, 0.9);
  compare("http_hit_get_1mib_cold", by_key, 0.8);
  compare("http_hit_encode_1mib_hot", {by_bytes[0]}, 0.9);
  compare("http_hit_encode_1mib_cold", by_bytes, 0.8);
}

// A directory for the stores, gone at the very end: for some minutes ext4 passes over inodes
// that were deleted, one by one whenever it looks for a free one (recently_deleted() in
// fs/ext4/ialloc.c), and what is measured next would pay for what was cleared away before.
class Scratch {
 public:
  Scratch() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "vitrove-bench-http-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::string store_url(const std::string& name) const {
    return "file://" + (path_ / name).string() + "?capacity=8GiB";
  }

 private:
  std::filesystem::path path_;
};

ServerConfig cached_config(const std::string& encoder, const std::string& store) {
  ServerConfig config = bench_config(encoder);
  config.stores = {store};
  return config;
}

constexpr std::uint32_t picture_side = 224;

// Milliseconds of one request.
double milliseconds(HttpClient& client, const std::string& request) {
  return 1e3 * seconds_of([&] { client.exchange(request); });
}

void measure_latencies(Harness& harness, const std::string& encoder, const Scratch& scratch) {
  if (!harness.wants("http_latency")) return;
  Server server(cached_config(encoder, scratch.store_url("latencies")));
  HttpClient client(server.server.port());
  const std::string request = encode_request(1, picture_side, "safetensors");
  const std::string flush_pool = http_post("/flush?scope=local", " ");
  const std::string flush_all = http_post("/flush?scope=all", " ");
  auto& controller = server.server.service().controller();
  const auto settle = [&] {
    controller.wait_for_puts(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  };
  const auto fresh = [&] {
    client.exchange(flush_all);
    const double took = milliseconds(client, request);
    settle();
    return took;
  };
  const auto from_store = [&] {
    client.exchange(flush_pool);
    return milliseconds(client, request);
  };
  const auto from_pool = [&] { return milliseconds(client, request); };
  fresh();
  harness.compare({"http_latency_pool_hit", "ms", "an encode of the picture", {}}, from_pool, [&] {
    const double took = fresh();
    milliseconds(client, request);
    return took;
  });
  harness.compare({"http_latency_file_store_hit", "ms", "an encode of the picture", {}}, from_store,
                  fresh);
}

using MakeRequest = std::function<std::string(std::uint32_t)>;  // of each number another new item

// Items a second from some clients at once, all of them new.
class ColdLoad {
 public:
  explicit ColdLoad(MakeRequest make) : make_(std::move(make)) {}

  double run(std::uint16_t port, std::uint32_t clients, std::uint32_t count) {
    std::vector<std::string> requests;
    for (std::uint32_t i = 0; i < count; ++i) requests.push_back(make_(next_++));
    std::atomic<std::size_t> next{0};
    const double seconds = seconds_of([&] {
      std::vector<std::jthread> threads;
      for (std::uint32_t i = 0; i < clients; ++i) {
        threads.emplace_back([&] {
          HttpClient client(port);
          for (std::size_t at = next++; at < requests.size(); at = next++) {
            client.exchange(requests[at]);
          }
        });
      }
    });
    return count / seconds;
  }

 private:
  const MakeRequest make_;
  std::uint32_t next_ = 0;
};

// The pictures of the demo, which are new to each tenant: an item has the tenant in its key.
class Photographs {
 public:
  explicit Photographs(const Scratch& scratch) : keys_file_(scratch.path() / "tenants") {
    for (const auto& entry : std::filesystem::directory_iterator("build/sample/pictures")) {
      const std::string extension = entry.path().extension();
      if (extension != ".png" && extension != ".jpg") continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes(std::istreambuf_iterator<char>(in), {});
      bodies_.push_back(encode_body(vitrove::test::data_url(bytes), "metadata"));
    }
    std::ofstream out(keys_file_);
    for (std::uint32_t tenant = 0; tenant < tenants; ++tenant) {
      out << "key-" << tenant << " tenant-" << tenant << '\n';
    }
  }
  static bool are_there() { return std::filesystem::exists("build/sample/pictures"); }

  const std::filesystem::path& keys_file() const { return keys_file_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(bodies_.size()); }
  std::string request(std::uint32_t number) const {
    const std::uint32_t tenant = number / count();
    if (tenant >= tenants) throw std::runtime_error("more rounds than there are tenants");
    return http_post("/encode", bodies_[number % count()],
                     "Authorization: Bearer key-" + std::to_string(tenant) + "\r\n");
  }

 private:
  static constexpr std::uint32_t tenants = 256;  // each turn of a side takes six

  const std::filesystem::path keys_file_;
  std::vector<std::string> bodies_;
};

// The same items on two servers that differ in having a cache.
class OnAndOff {
 public:
  OnAndOff(ServerConfig on, ServerConfig off, MakeRequest make)
      : on_(smaller(std::move(on))), off_(without(std::move(off))), load_(std::move(make)) {}

  void compare(Harness& harness, const std::string& name, std::uint32_t clients,
               std::uint32_t items) {
    harness.compare(
        {name, "items/s", "pool 0, no store", ratio_at_least(0.95)},
        [&] { return load_.run(on_.server.port(), clients, items); },
        [&] { return load_.run(off_.server.port(), clients, items); });
  }
  void warm_up(std::uint32_t items) { load_.run(on_.server.port(), 16, items); }

 private:
  static ServerConfig smaller(ServerConfig config) {
    config.pool_size = std::uint64_t{8} << 20;  // full after the first turn, as pools are
    return config;
  }
  static ServerConfig without(ServerConfig config) {
    config.pool_size = 0;
    return config;
  }

  Server on_;
  Server off_;
  ColdLoad load_;
};

// Throughput is what a server does that is never out of work. With four clients the cores now and
// then are, and what is compared is latency as well.
void compare_throughput(Harness& harness, const std::string& encoder, const Scratch& scratch) {
  if (!harness.wants("http_throughput_no_hits")) return;
  OnAndOff servers(
      cached_config(encoder, scratch.store_url("throughput")), bench_config(encoder),
      [](std::uint32_t number) { return encode_request(1000 + number, picture_side, "metadata"); });
  constexpr std::uint32_t store_warm_up = 512;  // a store in use has made its 256 directories
  servers.warm_up(store_warm_up);
  constexpr std::uint32_t items = 256;  // shorter turns scatter by more than what is asked for
  servers.compare(harness, "http_throughput_no_hits", 16, items);
  servers.compare(harness, "http_throughput_no_hits_4_clients", 4, items);
}

void compare_photographs(Harness& harness, const std::string& encoder, const Scratch& scratch) {
  if (!harness.wants("http_throughput_photographs") || !Photographs::are_there()) return;
  const Photographs photographs(scratch);
  ServerConfig on = cached_config(encoder, scratch.store_url("photographs"));
  ServerConfig off = bench_config(encoder);
  on.tenant_keys_file = off.tenant_keys_file = photographs.keys_file();
  OnAndOff servers(on, off, [&](std::uint32_t number) { return photographs.request(number); });
  servers.warm_up(20 * photographs.count());
  servers.compare(harness, "http_throughput_photographs", 16, 6 * photographs.count());
}

std::string default_encoder() {
  const char* sample = "build/sample/model";
  if (std::filesystem::exists(sample)) return sample;
  return "stub:dim=1280,tokens=49,seed=1,delay_ms=50";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Harness harness(argc, argv, {"--encoder"});
    vitrove::set_up_logging(spdlog::level::off, vitrove::LogFormat::text);
    const std::string encoder = harness.option("--encoder", default_encoder());
    const Scratch scratch;
    compare_hits(harness);
    compare_photographs(harness, encoder, scratch);
    compare_throughput(harness, encoder, scratch);
    measure_latencies(harness, encoder, scratch);  // deletes, see Scratch
    return harness.finish();
  } catch (const std::exception& error) {
    std::cerr << "bench_http: " << error.what() << '\n';
    return 1;
  }
}
