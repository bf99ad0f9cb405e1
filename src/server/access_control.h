// AccessControl: who may call what (design section 8).
//
//  - Open routes need no key.
//  - Caller routes need a key when there are any (--api-key, --tenant-keys); with tenants the key
//    says whose embeddings the caller sees.
//  - Admin routes need the --admin-key when tenants are on or the server listens beyond loopback;
//    no admin key set means 403 there. Otherwise they are like caller routes.
//  - Where no key is needed, what a web page of another site sends is refused, but for GET and
//  HEAD,
//    whose replies browsers keep from it.
//  - The admin key is good everywhere and passes the tenant check.
//
// Keys are compared by their digests in constant time. Immutable after construction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http_message.h"
#include "server/server_config.h"
#include "vitrove/digest.h"

namespace vitrove {

enum class Access : std::uint8_t { open, caller, admin };

class AccessControl {
 public:
  // Throws Error{invalid_argument} when the tenant file is missing or malformed.
  AccessControl(const ServerConfig& config, bool beyond_loopback);

  // Sets request.tenant and request.is_admin. Throws Error{unauthorized} or Error{forbidden}.
  void check(Access needed, HttpRequest& request) const;

  bool has_tenants() const { return has_tenants_; }

 private:
  struct Caller {
    Digest256 key;
    std::string tenant;
  };
  void read_tenants(const std::string& file);
  const Caller* find(const Digest256& key) const;

  std::vector<Caller> callers_;
  Digest256 admin_key_;
  bool has_admin_key_ = false;
  bool has_tenants_ = false;
  bool admin_needs_key_ = false;
};

}  // namespace vitrove
