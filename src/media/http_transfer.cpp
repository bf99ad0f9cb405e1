#include "media/http_transfer.h"

#include <algorithm>
#include <new>

#include <sys/socket.h>

#include "media/ip_address.h"
#include "vitrove/error.h"

namespace vitrove {
namespace {

// Bodies of redirects and errors are read so far, to keep the connection, and then broken off.
constexpr std::size_t max_ignored_bytes = 64 * 1024;

CurlList make_list(const std::vector<std::string>& lines) {
  CurlList list;
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    static_cast<void>(list.release());
    list.reset(longer);
  }
  return list;
}

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
  const CURLcode status = curl_easy_setopt(easy, option, value);
  if (status == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (status != CURLE_OK) {
    throw Error(ErrorCode::internal, "libcurl lacks an option", std::to_string(option));
  }
}

long milliseconds(std::chrono::milliseconds time) {
  return static_cast<long>(std::clamp<std::int64_t>(time.count(), 1, 1'000'000'000));
}

bool is_success(long status) { return status >= 200 && status < 300; }

}  // namespace

TransferResult HttpTransfer::run(const HttpUrl& url, const std::vector<std::string>& resolve,
                                 std::chrono::steady_clock::time_point end,
                                 const std::stop_token& cancel) {
  headers_ =
      make_list({"Accept: image/*, video/*, audio/*, */*;q=0.5", "Accept-Encoding: identity"});
  resolve_ = make_list(resolve);
  curl_easy_reset(easy_);
  set_up(url);
  if (curl_multi_add_handle(multi_, easy_) != CURLM_OK) throw std::bad_alloc();
  perform(end, cancel);
  curl_multi_remove_handle(multi_, easy_);
  if (refused_) std::rethrow_exception(refused_);
  return std::move(result_);
}

void HttpTransfer::set_up(const HttpUrl& url) {
  set(easy_, CURLOPT_CURLU, url.parsed.get());
  set(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy_, CURLOPT_FOLLOWLOCATION, 0L);  // each hop is a new URL under the same rules
  set(easy_, CURLOPT_PROXY, "");           // and none of the environment's proxies
  set(easy_, CURLOPT_NOPROXY, "*");
  set(easy_, CURLOPT_NOSIGNAL, 1L);
  set(easy_, CURLOPT_QUICK_EXIT, 1L);  // a slow resolver does not hold us up
  set(easy_, CURLOPT_USERAGENT, "vitrove");
  set(easy_, CURLOPT_HTTPHEADER, headers_.get());
  set(easy_, CURLOPT_HTTP_CONTENT_DECODING, 0L);
  set(easy_, CURLOPT_RESOLVE, resolve_.get());
  set(easy_, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(policy_.connect_timeout));
  set(easy_, CURLOPT_LOW_SPEED_LIMIT,
      static_cast<long>(std::min<std::uint64_t>(policy_.low_speed_bytes_per_second, 1U << 30)));
  set(easy_, CURLOPT_LOW_SPEED_TIME, static_cast<long>(policy_.low_speed_time.count()));
  set(easy_, CURLOPT_WRITEFUNCTION, &HttpTransfer::on_body);
  set(easy_, CURLOPT_WRITEDATA, this);
  set(easy_, CURLOPT_OPENSOCKETFUNCTION, &HttpTransfer::on_open_socket);
  set(easy_, CURLOPT_OPENSOCKETDATA, this);
}

void HttpTransfer::perform(std::chrono::steady_clock::time_point end,
                           const std::stop_token& cancel) {
  using std::chrono::milliseconds;
  const std::stop_callback wake(cancel, [this] { curl_multi_wakeup(multi_); });
  for (;;) {
    int running = 0;
    if (curl_multi_perform(multi_, &running) != CURLM_OK) return;
    if (take_result()) return;
    if (cancel.stop_requested()) {
      result_.end = TransferEnd::cancelled;
      return;
    }
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) {
      result_.end = TransferEnd::overdue;
      return;
    }
    const auto pause = std::chrono::ceil<milliseconds>(left);
    curl_multi_poll(multi_, nullptr, 0,
                    static_cast<int>(std::min<std::int64_t>(pause.count(), 1000)), nullptr);
  }
}

bool HttpTransfer::take_result() {
  int queued = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &queued)) {
    if (message->msg != CURLMSG_DONE) continue;
    result_.code = message->data.result;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &result_.status);
    char* location = nullptr;
    curl_easy_getinfo(easy_, CURLINFO_REDIRECT_URL, &location);
    if (location != nullptr) result_.location = location;
    result_.end = judge();
    if (result_.end != TransferEnd::complete) result_.body.clear();
    return true;
  }
  return false;
}

TransferEnd HttpTransfer::judge() const {
  if (is_too_large_) return TransferEnd::too_large;
  if (result_.code == CURLE_OK || is_unwanted_) return TransferEnd::complete;
  return is_denied_ ? TransferEnd::denied : TransferEnd::failed;
}

// False ends the transfer.
bool HttpTransfer::accept(const std::byte* data, std::size_t size) {
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  if (!is_success(status)) {
    ignored_bytes_ += size;
    is_unwanted_ = ignored_bytes_ > max_ignored_bytes;
    return !is_unwanted_;
  }
  curl_off_t declared = -1;
  curl_easy_getinfo(easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &declared);
  const std::uint64_t known = declared > 0 ? static_cast<std::uint64_t>(declared) : 0;
  const std::uint64_t wanted = std::max<std::uint64_t>(known, result_.body.size() + size);
  if (wanted > policy_.max_item_bytes) {
    is_too_large_ = true;
    return false;
  }
  // As it comes, and not what was declared: an origin that only promises holds up nobody.
  if (wanted_) wanted_(result_.body.size() + size);
  if (result_.body.empty()) result_.body.reserve(wanted);
  result_.body.insert(result_.body.end(), data, data + size);
  return true;
}

std::size_t HttpTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const std::size_t bytes = size * count;
  try {
    return transfer.accept(reinterpret_cast<const std::byte*>(data), bytes) ? bytes : bytes + 1;
  } catch (...) {
    transfer.refused_ = std::current_exception();
    return bytes + 1;
  }
}

// The last word on where we connect to: the very address that the socket is for (B80).
curl_socket_t HttpTransfer::on_open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const bool is_internet = address->family == AF_INET || address->family == AF_INET6;
  const bool is_allowed = is_internet && (transfer.rules_.allows_private() ||
                                          is_public(address->addr, address->addrlen));
  if (!is_allowed) {
    transfer.is_denied_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace vitrove
