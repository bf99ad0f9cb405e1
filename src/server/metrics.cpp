#include "server/metrics.h"

#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace vitrove {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double us_per_second = 1e6;
constexpr const char* common_fault = "io_error";

const prometheus::Histogram::BucketBoundaries request_seconds_bounds = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

class Family {
 public:
  Family(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }

  void add(Labels labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = value;
    metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
  }
  void add(Labels labels, std::uint64_t value) {
    add(std::move(labels), static_cast<double>(value));
  }

  void add_histogram(Labels labels, const StoreOpStats& stats) {
    ClientMetric metric;
    metric.label = std::move(labels);
    const auto bounds = store_seconds_bounds();
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < stats.seconds_buckets.size(); ++i) {
      seen += stats.seconds_buckets[i];
      const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({seen, bound});
    }
    metric.histogram.sample_count = seen;
    metric.histogram.sample_sum = stats.seconds_sum;
    family_.metric.push_back(std::move(metric));
  }

  MetricFamily take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

Family counter(const char* name, const char* help) { return {name, help, MetricType::Counter}; }
Family gauge(const char* name, const char* help) { return {name, help, MetricType::Gauge}; }

MetricFamily lookups(const ControllerStats& stats) {
  Family family = counter("vitrove_lookups_total", "Items looked up, by where they were found.");
  for (const auto modality : {Modality::image, Modality::video, Modality::audio}) {
    const auto& counts = stats.lookups[static_cast<std::size_t>(modality)];
    const std::string name(to_string(modality));
    family.add({{"modality", name}, {"result", "local"}}, counts.local);
    family.add({{"modality", name}, {"result", "joined"}}, counts.joined);
    family.add({{"modality", name}, {"result", "store"}}, counts.store);
    family.add({{"modality", name}, {"result", "miss"}}, counts.miss);
  }
  return family.take();
}

MetricFamily single(Family family, double value) {
  family.add({}, value);
  return family.take();
}

void add_encoder(const EncoderTotals& totals, std::vector<MetricFamily>& out) {
  out.push_back(single(counter("vitrove_encoder_items_total", "Items the encoder has encoded."),
                       static_cast<double>(totals.items)));
  out.push_back(single(counter("vitrove_encoder_seconds_total", "Time the encoder was busy."),
                       static_cast<double>(totals.busy_us) / us_per_second));
}

void add_pool(const ControllerStats& stats, std::vector<MetricFamily>& out) {
  out.push_back(
      single(counter("vitrove_encode_seconds_saved_total", "Encoder time that hits have saved."),
             static_cast<double>(stats.saved_us) / us_per_second));
  Family bytes = gauge("vitrove_pool_bytes", "Bytes of the pool, by state.");
  bytes.add({{"state", "used"}}, stats.bytes_used);
  bytes.add({{"state", "pinned"}}, stats.bytes_pinned);
  bytes.add({{"state", "free"}}, stats.bytes_free);
  bytes.add({{"state", "quarantined"}}, stats.bytes_quarantined);
  out.push_back(bytes.take());
  Family entries = gauge("vitrove_entries", "Entries of the pool, by state.");
  entries.add({{"state", "ready"}}, stats.entries_ready);
  entries.add({{"state", "filling"}}, stats.entries_filling);
  out.push_back(entries.take());
  Family evictions = counter("vitrove_evictions_total", "Entries dropped, by reason.");
  evictions.add({{"reason", "space"}}, stats.evictions_space);
  evictions.add({{"reason", "flush"}}, stats.evictions_flush);
  evictions.add({{"reason", "removed"}}, stats.evictions_removed);
  out.push_back(evictions.take());
  Family rejected =
      counter("vitrove_rejected_values_total", "Stored values that were not believed, by reason.");
  for (const auto& [reason, count] : stats.rejected) rejected.add({{"reason", reason}}, count);
  out.push_back(rejected.take());
}

void add_stores(const ControllerStats& stats, std::vector<MetricFamily>& out) {
  Family ops = counter("vitrove_store_ops_total", "Keys asked of a store, by result.");
  Family errors = counter("vitrove_store_errors_total", "Faults of a store, by reason.");
  Family seconds("vitrove_store_seconds", "Time of calls to a store.", MetricType::Histogram);
  Family pending = gauge("vitrove_store_pending", "Keys queued or running.");
  for (const auto& store : stats.stores) {
    const std::pair<const char*, const StoreOpStats*> kinds[] = {{"get", &store.get},
                                                                 {"put", &store.put},
                                                                 {"exist", &store.exist},
                                                                 {"remove", &store.remove}};
    for (const auto& [op, counts] : kinds) {
      const Labels labels = {{"store", store.name}, {"op", op}};
      const auto with = [&](const char* name, const std::string& value) {
        Labels more = labels;
        more.push_back({name, value});
        return more;
      };
      ops.add(with("result", "ok"), counts->ok);
      ops.add(with("result", "absent"), counts->absent);
      ops.add(with("result", "error"), counts->faults);
      ops.add(with("result", "cancelled"), counts->cancelled);
      // There from the start, so that the first fault is seen as a rise.
      bool has_common = false;
      for (const auto& [reason, count] : counts->reasons) {
        errors.add(with("reason", reason), count);
        has_common = has_common || reason == common_fault;
      }
      if (!has_common) errors.add(with("reason", common_fault), std::uint64_t{0});
      seconds.add_histogram(labels, *counts);
      pending.add(labels, counts->pending);
    }
  }
  for (Family* family : {&ops, &errors, &seconds, &pending}) out.push_back(family->take());
  if (stats.stores.empty()) return;
  out.push_back(single(counter("vitrove_puts_skipped_total",
                               "Values that are cheaper to encode again than to fetch."),
                       static_cast<double>(stats.puts_skipped)));
  Family claims = counter("vitrove_claims_total",
                          "Items about which the store was asked who encodes, by outcome.");
  claims.add({{"result", "won"}}, stats.claims.won);
  claims.add({{"result", "waited"}}, stats.claims.waited);
  claims.add({{"result", "expired"}}, stats.claims.expired);
  claims.add({{"result", "failed"}}, stats.claims.failed);
  claims.add({{"result", "lost"}}, stats.claims.lost);
  claims.add({{"result", "unreleased"}}, stats.claims.unreleased);
  out.push_back(claims.take());
  out.push_back(single(counter("vitrove_puts_dropped_total",
                               "Values that were not put: queue or staging full, breaker open."),
                       static_cast<double>(stats.puts_dropped)));
}

class CacheCollector final : public prometheus::Collectable {
 public:
  explicit CacheCollector(const EncodeService& service) : service_(service) {}

  std::vector<MetricFamily> Collect() const override {
    const ControllerStats stats = service_.controller().stats();
    std::vector<MetricFamily> families;
    families.push_back(lookups(stats));
    add_encoder(service_.encoder_totals(), families);
    add_pool(stats, families);
    add_stores(stats, families);
    return families;
  }

 private:
  const EncodeService& service_;
};

}  // namespace

struct ServerMetrics::Impl {
  explicit Impl(const EncodeService& service)
      : cache(service),
        requests(prometheus::BuildCounter()
                     .Name("vitrove_requests_total")
                     .Help("Requests answered, by route and status.")
                     .Register(registry)),
        seconds(prometheus::BuildHistogram()
                    .Name("vitrove_request_seconds")
                    .Help("Time to the first byte of the reply.")
                    .Register(registry)) {}

  CacheCollector cache;
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests;
  prometheus::Family<prometheus::Histogram>& seconds;
};

ServerMetrics::ServerMetrics(const EncodeService& service)
    : impl_(std::make_unique<Impl>(service)) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::request_done(std::string_view route, int status,
                                 std::chrono::microseconds took) {
  const std::string name(route);
  impl_->requests.Add({{"route", name}, {"code", std::to_string(status)}}).Increment();
  impl_->seconds.Add({{"route", name}}, request_seconds_bounds)
      .Observe(static_cast<double>(took.count()) / us_per_second);
}

std::string ServerMetrics::text() const {
  auto families = impl_->registry.Collect();
  for (auto& family : impl_->cache.Collect()) {
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace vitrove
