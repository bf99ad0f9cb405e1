// Store URLs come from command lines and configuration files: any text either parses or is refused,
// and what parsed reads back the same.
#include <cstdlib>
#include <string_view>

#include "vitrove/embedding_store_factory.h"
#include "vitrove/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(vitrove::redact_url(text));
  try {
    const vitrove::StoreUrl url = vitrove::StoreUrl::parse(text);
    const vitrove::StoreUrl again = vitrove::StoreUrl::parse(url.text());
    const bool same = again.scheme == url.scheme && again.user == url.user &&
                      again.password == url.password && again.host == url.host &&
                      again.port == url.port && again.path == url.path;
    if (!same) std::abort();
  } catch (const vitrove::Error&) {
  }
  return 0;
}
