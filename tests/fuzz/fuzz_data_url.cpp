// data: URLs: whole bytes within the limit, or an Error.
#include <string>

#include "fuzz/media_fuzz.h"
#include "media/data_url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vitrove;
  constexpr std::uint64_t limit = 512;
  const std::string url = "data:" + std::string(fuzz::as_text(data, size));
  try {
    const auto bytes = decode_data_url(url, limit);
    fuzz::check(!bytes.empty() && bytes.size() <= limit,
                "the payload is whole and within the limit");
  } catch (const Error& error) {
    const int status = http_status(error.code());
    fuzz::check(status == 400 || status == 413, "only errors that a client can cause");
  }
  return 0;
}
