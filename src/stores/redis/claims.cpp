#include "stores/redis/claims.h"

#include <algorithm>
#include <random>

#include "stores/redis/resp.h"

namespace vitrove::redis {
namespace {

// Redis takes no expiry of 0.
std::string milliseconds(std::chrono::milliseconds ttl) {
  return std::to_string(std::max<std::chrono::milliseconds::rep>(1, ttl.count()));
}

constexpr std::string_view renew_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
constexpr std::string_view release_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then "
    "return redis.call('del', KEYS[1]) end return 0";

}  // namespace

std::string make_token() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::random_device random;
  std::string token;
  for (int word = 0; word < 4; ++word) {
    std::uint32_t bits = random();
    for (int digit = 0; digit < 8; ++digit, bits >>= 4) token += digits[bits & 15];
  }
  return token;
}

std::string encode_claim(std::string_view key, std::string_view token,
                         std::chrono::milliseconds ttl) {
  return encode_command({"SET", key, token, "NX", "PX", milliseconds(ttl)});
}

std::string encode_renew(std::string_view key, std::string_view token,
                         std::chrono::milliseconds ttl) {
  return encode_command({"EVAL", renew_script, "1", key, token, milliseconds(ttl)});
}

std::string encode_release(std::string_view key, std::string_view token) {
  return encode_command({"EVAL", release_script, "1", key, token});
}

}  // namespace vitrove::redis
