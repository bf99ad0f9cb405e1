// Base64 for data: URLs, by OpenSSL.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vitrove::cli {

std::string base64_encode(std::span<const std::byte> bytes);

}  // namespace vitrove::cli
