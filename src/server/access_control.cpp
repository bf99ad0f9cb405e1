#include "server/access_control.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>
#include <sstream>

#include "vitrove/error.h"

namespace vitrove {
namespace {

constexpr std::size_t max_key_bytes = 4096;
constexpr std::size_t max_tenant_bytes = 256;

bool equal_in_constant_time(const Digest256& a, const Digest256& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.bytes.size(); ++i) {
    difference |= std::to_integer<unsigned>(a.bytes[i] ^ b.bytes[i]);
  }
  return difference == 0;
}

std::optional<std::string_view> bearer_key(std::string_view header) {
  static constexpr std::string_view scheme = "bearer ";
  if (header.size() <= scheme.size() || header.size() > max_key_bytes) return std::nullopt;
  const auto is_same = [](char want, char have) {
    return std::tolower(static_cast<unsigned char>(have)) == want;
  };
  if (!std::equal(scheme.begin(), scheme.end(), header.begin(), is_same)) return std::nullopt;
  header.remove_prefix(scheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  return header;
}

void check_key(const std::string& key) {
  const auto is_plain = [](char c) { return c > 0x20 && c < 0x7f; };
  if (key.empty() || key.size() > max_key_bytes || !std::ranges::all_of(key, is_plain)) {
    throw Error(ErrorCode::invalid_argument, "a key must be printable ASCII without blanks");
  }
}

}  // namespace

AccessControl::AccessControl(const ServerConfig& config, bool beyond_loopback) {
  for (const auto& key : config.api_keys) {
    check_key(key);
    callers_.push_back({sha256(std::string_view(key)), {}});
  }
  if (!config.tenant_keys_file.empty()) read_tenants(config.tenant_keys_file);
  if (!config.admin_key.empty()) {
    check_key(config.admin_key);
    admin_key_ = sha256(std::string_view(config.admin_key));
    has_admin_key_ = true;
    if (find(admin_key_) != nullptr) {
      throw Error(ErrorCode::invalid_argument, "--admin-key must not be a caller's key too");
    }
  }
  // Whoever gives a key means it, behind a proxy on this host as well.
  admin_needs_key_ = has_tenants_ || beyond_loopback || has_admin_key_;
}

void AccessControl::read_tenants(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(ErrorCode::invalid_argument, "--tenant-keys: cannot read the file", file);
  has_tenants_ = true;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line);
    std::string key, tenant, more;
    words >> key >> tenant >> more;
    if (key.empty() || key.starts_with('#')) continue;
    const std::string where = "--tenant-keys: line " + std::to_string(number);
    if (tenant.empty() || !more.empty()) {
      throw Error(ErrorCode::invalid_argument, where + " is not \"key tenant\"");
    }
    if (tenant.size() > max_tenant_bytes) {
      throw Error(ErrorCode::invalid_argument, where + ": the tenant's name is too long");
    }
    check_key(key);
    const Digest256 digest = sha256(std::string_view(key));
    if (find(digest) != nullptr) {
      throw Error(ErrorCode::invalid_argument, where + ": this key was there already");
    }
    callers_.push_back({digest, tenant});
  }
  // Half a file would be a server that has forgotten some of its tenants.
  if (in.bad())
    throw Error(ErrorCode::invalid_argument, "--tenant-keys: cannot read the file", file);
  if (callers_.empty()) {
    throw Error(ErrorCode::invalid_argument, "--tenant-keys: the file holds no keys");
  }
}

// Looks at all of them, so that the time taken says nothing about the key.
const AccessControl::Caller* AccessControl::find(const Digest256& key) const {
  const Caller* found = nullptr;
  for (const auto& caller : callers_) {
    if (equal_in_constant_time(caller.key, key)) found = &caller;
  }
  return found;
}

void AccessControl::check(Access needed, HttpRequest& request) const {
  if (needed == Access::open) return;
  const bool wants_admin = needed == Access::admin && admin_needs_key_;
  if (wants_admin && !has_admin_key_) {
    throw Error(ErrorCode::forbidden,
                "this route needs an admin key, and the server has none (--admin-key)");
  }
  const auto key = bearer_key(request.authorization);
  const std::optional<Digest256> digest = key ? std::optional(sha256(*key)) : std::nullopt;
  if (digest && has_admin_key_ && equal_in_constant_time(*digest, admin_key_)) {
    request.is_admin = true;
    return;
  }
  const Caller* caller = digest ? find(*digest) : nullptr;
  if (caller == nullptr && (!callers_.empty() || wants_admin)) {
    throw Error(ErrorCode::unauthorized, "a valid key is needed: Authorization: Bearer KEY");
  }
  if (wants_admin) throw Error(ErrorCode::forbidden, "this route needs the admin key");
  // Without a key, being on this host is all that lets a caller in; and so is any page that is open
  // in a browser here.
  const bool changes = request.method != "GET" && request.method != "HEAD";
  if (caller == nullptr && changes && request.is_from_page) {
    throw Error(ErrorCode::forbidden, "web pages may not call this server without a key");
  }
  if (caller != nullptr) request.tenant = caller->tenant;
}

}  // namespace vitrove
