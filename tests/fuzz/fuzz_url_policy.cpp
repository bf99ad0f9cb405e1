// http(s) URLs against the rules: whatever passes has a plain host that is not a private address.
#include "fuzz/media_fuzz.h"
#include "media/ip_address.h"
#include "media/url_policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  const HostRules anybody({}, false);
  const HostRules listed({"good.example", ".cdn.example"}, false);
  for (const HostRules* rules : {&anybody, &listed}) {
    try {
      const HttpUrl url = parse_http_url(fuzz::as_text(data, size), *rules);
      fuzz::check(!url.host.empty(), "a host that passes has a name");
      fuzz::check(is_public_literal(url.host).value_or(true), "no private address passes");
      fuzz::check(rules->lists(url.host), "a host that passes is on the list");
      fuzz::check(url.host.find_first_of("@/\\?# ") == std::string::npos,
                  "the host is a host alone");
    } catch (const Error& error) {
      const int status = http_status(error.code());
      fuzz::check(status == 400 || status == 403, "only errors that a client can cause");
    }
  }
  return 0;
}
