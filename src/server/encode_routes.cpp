#include "server/encode_routes.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/error_reply.h"
#include "server/flush_reply.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::string_view key_route = "/embeddings/";
// Parsing and hashing one item of so much takes an I/O thread some tens of microseconds; more items
// or settings than one has are not even parsed there.
constexpr std::size_t max_quick_body = 64 * 1024;
constexpr std::uint32_t max_quick_items = 1;

EmbeddingKey key_of(const HttpRequest& request) {
  const auto key = EmbeddingKey::parse(std::string_view(request.path).substr(key_route.size()));
  if (!key) throw Error(ErrorCode::invalid_argument, "a key is \"vt1-\" and 64 hex digits");
  return *key;
}

[[noreturn]] void nothing_there() {
  throw Error(ErrorCode::not_found, "no embedding has this key");
}

bool wants_metadata(const HttpRequest& request) {
  const auto form = request.query.find("return");
  if (form == request.query.end() || form->second == "safetensors") return false;
  if (form->second == "metadata") return true;
  throw Error(ErrorCode::invalid_argument, "return must be \"metadata\" or \"safetensors\"");
}

RequestContext context_of(const HttpRequest& request) {
  return {request.deadline, request.cancel, request.request_id};
}

EncodedItem found_item(const EmbeddingKey& key, EmbeddingView view, Source source) {
  const Modality modality = view.modality();
  return {key, modality, source, std::move(view)};
}

EncodeRequest work_of(const HttpRequest& request, EncodeBody body, const std::string& req_id) {
  EncodeRequest work;
  work.req_id = req_id;
  work.items = std::move(body.items);
  work.tenant = request.tenant;
  work.deadline = request.deadline;
  work.cancel = request.cancel;
  return work;
}

ReplyFrame frame_of(const EncodeBody& body, const std::string& req_id) {
  return {req_id, body.num_parts, body.part_idx};
}
ReplyFrame frame_of(const HttpRequest& request) { return {request.request_id, 1, 0}; }

}  // namespace

EncodeRoutes::EncodeRoutes(const ServerConfig& config, bool has_tenants, EncodeService& service,
                           ReplyBudget& budget)
    : config_(config), has_tenants_(has_tenants), service_(service), budget_(budget) {}

std::vector<Route> EncodeRoutes::routes() {
  Route encode_route{"POST",         "/encode",
                     "/encode",      Lane::service,
                     Access::caller, [this](HttpRequest& request) { return encode(request); }};
  encode_route.quick = [this](HttpRequest& request) { return encode_from_pool(request); };
  encode_route.quick_body_limit = max_quick_body;
  // A body that could never be held is too large, not one to try again.
  encode_route.body_limit = std::min(config_.max_body_bytes, config_.max_inflight_bytes);
  Route get_route{
      "GET",         key_route,      "/embeddings/{key}",
      Lane::service, Access::caller, [this](HttpRequest& request) { return get(request); }};
  get_route.quick = [this](HttpRequest& request) { return get_from_pool(request); };
  Route remove_route{
      "DELETE",  key_route,     "/embeddings/{key}",
      Lane::far, Access::admin, [this](HttpRequest& request) { return remove(request); }};
  return {std::move(encode_route), std::move(get_route), std::move(remove_route)};
}

Answer EncodeRoutes::encode(HttpRequest& request) {
  std::string req_id = request.request_id;
  return reply_or_error(req_id, [&]() -> Answer {
    EncodeBody body = parse_encode_body(request.body, config_.max_items, req_id);
    request.body = {};
    const ReplyFrame frame = frame_of(body, req_id);
    const ReturnForm form = body.form;
    const bool waits_for_media = std::ranges::any_of(body.items, is_remote);
    auto work = std::make_shared<EncodeRequest>(work_of(request, std::move(body), req_id));
    if (!waits_for_media) return encode_work(frame, form, std::move(*work));
    return Later{Lane::media,
                 [this, frame, form, work] { return encode_work(frame, form, std::move(*work)); }};
  });
}

HttpResponse EncodeRoutes::encode_work(const ReplyFrame& frame, ReturnForm form,
                                       EncodeRequest work) {
  return reply_or_error(frame.req_id, [&] {
    auto items = service_.encode(std::move(work));
    if (form == ReturnForm::metadata) return metadata_reply(frame, items);
    return safetensors_reply(frame, std::move(items), budget_);
  });
}

// On the I/O thread: a small body whose one item is in the pool is answered without the way to
// another thread and back, which would cost more than the answer itself.
std::optional<HttpResponse> EncodeRoutes::encode_from_pool(HttpRequest& request) {
  if (request.body.size() > max_quick_body) return std::nullopt;
  std::string req_id = request.request_id;
  try {
    EncodeBody body = parse_encode_body(request.body, max_quick_items, req_id);
    const ReplyFrame frame = frame_of(body, req_id);
    const ReturnForm form = body.form;
    auto item = service_.peek_hit(work_of(request, std::move(body), req_id));
    if (!item) return std::nullopt;
    return hit_reply(frame, form, std::move(*item));
  } catch (const std::exception&) {
    return std::nullopt;  // encode() says what is wrong
  }
}

// Counted last: where no reply comes about, encode() follows and counts the lookup itself.
std::optional<HttpResponse> EncodeRoutes::hit_reply(const ReplyFrame& frame, ReturnForm form,
                                                    EncodedItem item) {
  const auto shared = std::make_shared<const EncodedItem>(std::move(item));
  auto reply = form == ReturnForm::metadata ? metadata_reply(frame, {shared.get(), 1})
                                            : pinned_safetensors_reply(frame, shared, budget_);
  if (reply) service_.controller().count_hit(shared->view);
  return reply;
}

// The tenant whose embeddings the caller may see; nothing when he may see all.
std::optional<Digest256> EncodeRoutes::visible_tenant(const HttpRequest& request) const {
  if (!has_tenants_ || request.is_admin) return std::nullopt;
  return tenant_digest(request.tenant);
}

std::optional<HttpResponse> EncodeRoutes::get_from_pool(HttpRequest& request) {
  try {
    const EmbeddingKey key = key_of(request);
    if (wants_metadata(request)) return std::nullopt;
    EmbeddingView view = service_.controller().peek(key);
    const auto tenant = visible_tenant(request);
    if (!view || (tenant && view.tenant() != *tenant)) return std::nullopt;
    const auto item =
        std::make_shared<const EncodedItem>(found_item(key, std::move(view), Source::local));
    // Copying, where pins are short, is for the other threads.
    return pinned_safetensors_reply(frame_of(request), item, budget_);
  } catch (const std::exception&) {
    return std::nullopt;  // get() says what is wrong
  }
}

HttpResponse EncodeRoutes::get(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    const EmbeddingKey key = key_of(request);
    const bool as_metadata = wants_metadata(request);
    auto hit = service_.controller().find(key, visible_tenant(request), context_of(request));
    if (!hit) nothing_there();
    std::vector<EncodedItem> items;
    items.push_back(found_item(key, std::move(hit->view), hit->source));
    if (as_metadata) return metadata_reply(frame_of(request), items);
    return safetensors_reply(frame_of(request), std::move(items), budget_);
  });
}

HttpResponse EncodeRoutes::remove(HttpRequest& request) {
  return reply_or_error(request.request_id, [&] {
    const EmbeddingKey key = key_of(request);
    const FlushReport report =
        service_.controller().remove(key, visible_tenant(request), context_of(request));
    if (total_removed(report) == 0) {
      if (is_complete(report)) nothing_there();
      throw Error(ErrorCode::unavailable, "a store could not remove this embedding");
    }
    HttpResponse response;
    response.req_id = request.request_id;
    response.body = nlohmann::json{{"key", key.text()}, {"tiers", tiers_json(report)}}.dump();
    return response;
  });
}

}  // namespace vitrove
