#include "cli/base64.h"

#include <algorithm>

#include <openssl/evp.h>

namespace vitrove::cli {

std::string base64_encode(std::span<const std::byte> bytes) {
  // EVP_EncodeBlock takes an int; pieces of a multiple of three bytes join without padding.
  constexpr std::size_t piece = 3 * (std::size_t{1} << 20);
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4 + 1);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const auto part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    const std::size_t old = text.size();
    text.resize(old + (part.size() + 2) / 3 * 4 + 1);  // EVP_EncodeBlock ends with a NUL
    const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data() + old),
                                       reinterpret_cast<const unsigned char*>(part.data()),
                                       static_cast<int>(part.size()));
    text.resize(old + static_cast<std::size_t>(length));
  }
  return text;
}

}  // namespace vitrove::cli
