// Shared by the tests of server/: an encoder that can be held and made to fail, a whole server
// without sockets, and calls to it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "contract/faulty_store.h"
#include "contract/gate.h"
#include "server/encode_service.h"
#include "server/server_core.h"
#include "support/png_maker.h"
#include "vitrove/embedding_store_factory.h"
#include "vitrove/encoder.h"
#include "vitrove/error.h"

namespace vitrove::test {

using nlohmann::json;
using testing::Gate;

constexpr std::chrono::seconds patience{60};

// Waits (this is a test, not the product) until the condition holds.
template <typename Condition>
[[nodiscard]] bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

struct Failure {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  int item = -1;
};

template <typename Action>
Failure failure_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what(), error.item()};
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

// A preprocessor behind a gate.
class TestPreprocessor final : public Preprocessor {
 public:
  explicit TestPreprocessor(const Preprocessor& inner) : inner_(inner) {}

  mutable Gate gate;

  std::string_view family() const override { return inner_.family(); }
  ResolvedParams resolve(Modality modality, std::string_view kwargs) const override {
    return inner_.resolve(modality, kwargs);
  }
  std::uint64_t bytes_beside(std::uint32_t width, std::uint32_t height,
                             const ResolvedParams& params) const override {
    return inner_.bytes_beside(width, height, params);
  }
  PreprocessedItem run(const RgbImage& image, const ResolvedParams& params) const override {
    gate.pass();
    return inner_.run(image, params);
  }
  VideoSampling video_sampling(const ResolvedParams& params) const override {
    return inner_.video_sampling(params);
  }
  std::uint64_t video_bytes_beside(const MediaShape& shape,
                                   const ResolvedParams& params) const override {
    return inner_.video_bytes_beside(shape, params);
  }
  std::unique_ptr<ClipRun> start_video(const ResolvedParams& params) const override {
    gate.pass();
    return inner_.start_video(params);
  }
  std::uint32_t audio_rate(const ResolvedParams& params) const override {
    return inner_.audio_rate(params);
  }
  std::uint64_t audio_bytes_beside(std::uint64_t samples,
                                   const ResolvedParams& params) const override {
    return inner_.audio_bytes_beside(samples, params);
  }
  PreprocessedItem run_audio(const AudioClip& clip, const ResolvedParams& params) const override {
    gate.pass();
    return inner_.run_audio(clip, params);
  }
  std::vector<PipelineVersion> versions() const override { return inner_.versions(); }

 private:
  const Preprocessor& inner_;
};

// The stub encoder behind a gate. `before` may throw in its place.
class TestEncoder final : public Encoder {
 public:
  explicit TestEncoder(const std::string& spec = "stub:dim=64,tokens=16,seed=1")
      : inner_(make_encoder(spec)), preprocessor_(inner_->preprocessor()) {}

  Gate gate;
  Gate& preprocessing() { return preprocessor_.gate; }
  std::atomic<int> items{0};
  std::atomic<int> batches{0};
  std::atomic<std::size_t> largest_batch{0};

  void set_before(std::function<void()> before) {
    std::lock_guard lock(mutex_);
    before_ = std::move(before);
  }

  const EncoderInfo& info() const override { return inner_->info(); }
  const Preprocessor& preprocessor() const override { return preprocessor_; }
  std::optional<std::uint32_t> token_count(const PreprocessedItem& item) const override {
    return inner_->token_count(item);
  }
  std::string batch_class(const PreprocessedItem& item) const override {
    return inner_->batch_class(item);
  }
  std::vector<EncoderOutput> encode(std::span<const PreprocessedItem* const> batch) override {
    ++batches;
    items += static_cast<int>(batch.size());
    largest_batch = std::max(largest_batch.load(), batch.size());
    gate.pass();
    std::function<void()> before;
    {
      std::lock_guard lock(mutex_);
      before = before_;
    }
    if (before) before();
    return inner_->encode(batch);
  }

 private:
  std::unique_ptr<Encoder> inner_;
  TestPreprocessor preprocessor_;
  std::mutex mutex_;
  std::function<void()> before_;
};

inline ServerConfig small_config() {
  ServerConfig config;
  config.encoder = "stub:dim=64,tokens=16,seed=1";
  config.stores = {"none"};
  config.pool_size = std::uint64_t{8} << 20;
  config.max_batch_wait = std::chrono::microseconds(200);
  config.request_timeout = std::chrono::seconds(60);
  config.log_level = "off";
  return config;
}

inline std::shared_ptr<EmbeddingStore> memory_store() {
  return EmbeddingStoreFactory::with_builtins().create_backend("memory:?capacity=64MiB");
}

inline std::shared_ptr<EmbeddingCacheController> make_controller(
    const ServerConfig& config, std::vector<std::shared_ptr<EmbeddingStore>> stores = {}) {
  ControllerOptions options;
  options.pool.pool_bytes = config.pool_size;
  options.pool.page_bytes = config.page_size;
  options.store_timeout = std::chrono::seconds(20);
  return std::make_shared<EmbeddingCacheController>(options, std::move(stores));
}

// A service with its encoder in the test's hands.
struct ServiceParts {
  explicit ServiceParts(ServerConfig the_config = small_config(),
                        std::vector<std::shared_ptr<EmbeddingStore>> stores = {},
                        std::shared_ptr<TestEncoder> the_encoder = std::make_shared<TestEncoder>())
      : config(std::move(the_config)),
        encoder(std::move(the_encoder)),
        controller(make_controller(config, std::move(stores))),
        service(std::make_shared<EncodeService>(config, controller, encoder)) {}
  ~ServiceParts() {
    encoder->preprocessing().open();
    encoder->gate.open();
  }

  ServerConfig config;
  std::shared_ptr<TestEncoder> encoder;
  std::shared_ptr<EmbeddingCacheController> controller;
  std::shared_ptr<EncodeService> service;
};

inline EncodeItem url_item(std::string url) {
  EncodeItem item;
  item.url = std::move(url);
  return item;
}

inline EncodeRequest request_for(std::vector<EncodeItem> items) {
  EncodeRequest request;
  request.req_id = "test";
  request.items = std::move(items);
  request.deadline = std::chrono::steady_clock::now() + patience;
  return request;
}

inline std::vector<EncodedItem> encode(EncodeService& service,
                                       const std::vector<std::uint32_t>& seeds) {
  std::vector<EncodeItem> items;
  for (const auto seed : seeds) items.push_back(url_item(png_url(seed)));
  return service.encode(request_for(std::move(items)));
}

inline std::string rows_of(const EmbeddingView& view) {
  std::string rows;
  for (const auto& run : view.runs()) {
    rows.append(reinterpret_cast<const char*>(run.data()), run.size());
  }
  return rows;
}

// What an encode without any cache gives for a picture.
inline std::string golden(std::uint32_t seed) {
  ServerConfig config = small_config();
  config.pool_size = 0;
  ServiceParts parts(config);
  return rows_of(encode(*parts.service, {seed}).at(0).view);
}

inline LookupStats image_lookups(const EmbeddingCacheController& controller) {
  return controller.stats().lookups[static_cast<std::size_t>(Modality::image)];
}

inline std::string whole_body(const HttpResponse& response) {
  std::string body = response.body;
  for (const auto& part : response.parts) {
    body.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return body;
}

struct Reply {
  HttpResponse response;

  int status() const { return response.status; }
  std::string body() const { return whole_body(response); }
  json parsed() const { return json::parse(body()); }
  json error() const { return parsed().at("error"); }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return {};
  }
};

struct CallOptions {
  std::string key;
  std::stop_token cancel = {};
};

// A call as a connection makes it: head, body, reply.
inline std::future<Reply> start_call(HttpHandler& handler, const std::string& method,
                                     const std::string& target, std::string body = {},
                                     const CallOptions& options = {}) {
  HttpRequest request;
  request.method = method;
  EXPECT_TRUE(parse_target(target, request));
  if (!options.key.empty()) request.authorization = "Bearer " + options.key;
  request.cancel = options.cancel;
  auto promise = std::make_shared<std::promise<Reply>>();
  auto future = promise->get_future();
  Admission admission = handler.admit(request);
  if (admission.refusal) {
    handler.on_reply(request, *admission.refusal);
    promise->set_value({std::move(*admission.refusal)});
    return future;
  }
  request.body = std::move(body);
  const HttpRequest head = request;
  handler.handle(std::move(request), [promise, head, &handler](HttpResponse response) {
    handler.on_reply(head, response);
    promise->set_value({std::move(response)});
  });
  return future;
}

inline Reply call(HttpHandler& handler, const std::string& method, const std::string& target,
                  std::string body = {}, const CallOptions& options = {}) {
  auto future = start_call(handler, method, target, std::move(body), options);
  if (future.wait_for(patience) != std::future_status::ready) {
    ADD_FAILURE() << method << " " << target << " was never answered";
    return {};
  }
  return future.get();
}

// A whole server without sockets.
struct TestServer {
  explicit TestServer(const ServerConfig& config = small_config(),
                      std::vector<std::shared_ptr<EmbeddingStore>> stores = {},
                      bool beyond_loopback = false,
                      std::shared_ptr<TestEncoder> encoder = std::make_shared<TestEncoder>())
      : parts(config, std::move(stores), std::move(encoder)),
        core(config, parts.service, beyond_loopback) {}
  ~TestServer() { parts.encoder->gate.open(); }

  Reply get(const std::string& target, const CallOptions& options = {}) {
    return call(core.handler(), "GET", target, {}, options);
  }
  Reply post(const std::string& target, const json& body, const CallOptions& options = {}) {
    return call(core.handler(), "POST", target, body.dump(), options);
  }
  Reply encode(const json& items, const json& more = json::object(),
               const CallOptions& options = {}) {
    json body = {{"mm_items", items}};
    body.update(more);
    return post("/encode", body, options);
  }
  std::future<Reply> start_encode(const json& items, const CallOptions& options = {}) {
    return start_call(core.handler(), "POST", "/encode", json{{"mm_items", items}}.dump(), options);
  }
  std::vector<std::string> sources(const json& items) {
    std::vector<std::string> found;
    const json reply = encode(items).parsed();
    for (const auto& item : reply.at("items")) found.push_back(item.at("source"));
    return found;
  }

  ServiceParts parts;
  ServerCore core;
};

}  // namespace vitrove::test
