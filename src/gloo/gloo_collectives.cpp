#include "vitrove/gloo_collectives.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include "base/no_sigpipe.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

void least(void* out, const void* left, const void* right, std::size_t count) {
  auto* to = static_cast<std::int64_t*>(out);
  const auto* a = static_cast<const std::int64_t*>(left);
  const auto* b = static_cast<const std::int64_t*>(right);
  for (std::size_t i = 0; i < count; ++i) to[i] = std::min(a[i], b[i]);
}

// Gloo has one type for a time that is up and for a connection that is lost.
[[noreturn]] void fail(const std::exception& error) {
  const std::string_view why = error.what();
  if (why.find("Timed out") != std::string_view::npos) {
    throw Error(ErrorCode::deadline_exceeded, "a rank did not answer in time", std::string(why));
  }
  throw Error(ErrorCode::unavailable, "the connection to a rank is lost", std::string(why));
}

class GlooCollectives final : public Collectives {
 public:
  explicit GlooCollectives(std::shared_ptr<gloo::rendezvous::Context> context)
      : context_(std::move(context)) {}
  ~GlooCollectives() override { close(); }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  void broadcast(std::span<std::byte> bytes, std::chrono::milliseconds timeout) override {
    if (bytes.empty() || size() == 1) return;
    try {
      const NoSigpipe guard;
      gloo::BroadcastOptions options(context_);
      options.setRoot(0);
      options.setTimeout(timeout);
      options.setOutput(bytes.data(), bytes.size());
      gloo::broadcast(options);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void all_reduce_min(std::span<std::int64_t> values, std::chrono::milliseconds timeout) override {
    if (values.empty() || size() == 1) return;
    try {
      const NoSigpipe guard;
      gloo::AllreduceOptions options(context_);
      options.setTimeout(timeout);
      options.setOutput(values.data(), values.size());
      options.setReduceFunction(least);
      gloo::allreduce(options);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  void close() noexcept override {
    try {
      const NoSigpipe guard;
      context_->closeConnections();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the process's end closes them as well
    }
  }

 private:
  const std::shared_ptr<gloo::rendezvous::Context> context_;
};

void check(const GlooOptions& options) {
  if (options.rank < 0 || options.rank >= options.size) {
    throw Error(ErrorCode::invalid_argument, "the rank is outside the group");
  }
  if (options.group.empty()) throw Error(ErrorCode::invalid_argument, "the group has no name");
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.directory, ignored)) {
    throw Error(ErrorCode::invalid_argument, "the ranks' directory does not exist",
                options.directory.string());
  }
}

}  // namespace

std::unique_ptr<Collectives> make_gloo_collectives(const GlooOptions& options) {
  check(options);
  try {
    // Gloo writes with writev(), and a rank that is gone would take the others along. The thread of
    // its device is started here.
    const NoSigpipe guard;
    gloo::transport::tcp::attr where;
    where.hostname = options.address;
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore files(options.directory.string());
    gloo::rendezvous::PrefixStore store(options.group, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(options.connect_timeout);
    context->connectFullMesh(store, device);
    return std::make_unique<GlooCollectives>(std::move(context));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::unavailable, "the ranks did not find each other", error.what());
  }
}

}  // namespace vitrove
