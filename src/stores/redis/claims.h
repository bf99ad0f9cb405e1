// The commands of claims: a key that only the holder of its token may prolong or remove.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace vitrove::redis {

// 128 random bits in hex.
std::string make_token();

std::string encode_claim(std::string_view key, std::string_view token,
                         std::chrono::milliseconds ttl);
// Both are answered 1 when the token holds the claim, and 0 otherwise.
std::string encode_renew(std::string_view key, std::string_view token,
                         std::chrono::milliseconds ttl);
std::string encode_release(std::string_view key, std::string_view token);

}  // namespace vitrove::redis
