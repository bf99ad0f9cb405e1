#include "media/ip_address.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace vitrove {
namespace {

template <std::size_t Size>
struct Block {
  std::array<std::uint8_t, Size> start;
  unsigned bits;
};

bool has_prefix(std::span<const std::uint8_t> address, std::span<const std::uint8_t> start,
                unsigned bits) {
  const std::size_t whole = bits / 8;
  if (!std::ranges::equal(address.first(whole), start.first(whole))) return false;
  const unsigned rest = bits % 8;
  if (rest == 0) return true;
  return (address[whole] ^ start[whole]) >> (8 - rest) == 0;
}

template <std::size_t Size, std::size_t Count>
bool is_in_any(const std::array<std::uint8_t, Size>& address,
               const std::array<Block<Size>, Count>& blocks) {
  return std::ranges::any_of(
      blocks, [&](const Block<Size>& b) { return has_prefix(address, b.start, b.bits); });
}

constexpr std::array special_v4{
    Block<4>{{0, 0, 0, 0}, 8},         // this network
    Block<4>{{10, 0, 0, 0}, 8},        // private
    Block<4>{{100, 64, 0, 0}, 10},     // carrier NAT
    Block<4>{{127, 0, 0, 0}, 8},       // loopback
    Block<4>{{168, 63, 129, 16}, 32},  // Azure's host service
    Block<4>{{169, 254, 0, 0}, 16},    // link-local, metadata services
    Block<4>{{172, 16, 0, 0}, 12},     // private
    Block<4>{{192, 0, 0, 0}, 24},      // protocol assignments
    Block<4>{{192, 0, 2, 0}, 24},      // documentation
    Block<4>{{192, 31, 196, 0}, 24},   // AS112
    Block<4>{{192, 52, 193, 0}, 24},   // automatic multicast tunnels
    Block<4>{{192, 88, 99, 0}, 24},    // 6to4 relays
    Block<4>{{192, 168, 0, 0}, 16},    // private
    Block<4>{{192, 175, 48, 0}, 24},   // AS112
    Block<4>{{198, 18, 0, 0}, 15},     // benchmarking
    Block<4>{{198, 51, 100, 0}, 24},   // documentation
    Block<4>{{203, 0, 113, 0}, 24},    // documentation
    Block<4>{{224, 0, 0, 0}, 4},       // multicast
    Block<4>{{240, 0, 0, 0}, 4},       // reserved, broadcast
};

constexpr Block<16> global_unicast{{0x20}, 3};
constexpr Block<16> mapped_v4{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
constexpr Block<16> nat64{{0, 0x64, 0xff, 0x9b}, 96};
constexpr Block<16> six_to_four{{0x20, 0x02}, 16};

constexpr std::array special_v6{
    Block<16>{{0x20, 0x01, 0x00}, 23},              // Teredo, ORCHID and other protocols
    Block<16>{{0x20, 0x01, 0x0d, 0xb8}, 32},        // documentation
    Block<16>{{0x26, 0x20, 0x00, 0x4f, 0x80}, 48},  // AS112
    Block<16>{{0x3f, 0xff}, 20},                    // documentation
};

bool is_in(const Ipv6& address, const Block<16>& block) {
  return has_prefix(address, block.start, block.bits);
}

Ipv4 embedded_v4(const Ipv6& address, std::size_t at) {
  Ipv4 result{};
  std::copy_n(address.begin() + static_cast<std::ptrdiff_t>(at), 4, result.begin());
  return result;
}

}  // namespace

bool is_public(const Ipv4& address) { return !is_in_any(address, special_v4); }

bool is_public(const Ipv6& address) {
  if (is_in(address, mapped_v4) || is_in(address, nat64)) {
    return is_public(embedded_v4(address, 12));
  }
  if (is_in(address, six_to_four)) return is_public(embedded_v4(address, 2));
  return is_in(address, global_unicast) && !is_in_any(address, special_v6);
}

bool is_public(const sockaddr& address, std::size_t size) {
  if (address.sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    Ipv4 bytes;
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return is_public(bytes);
  }
  if (address.sa_family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    Ipv6 bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return is_public(bytes);
  }
  return false;
}

std::optional<bool> is_public_literal(std::string_view text) {
  std::string host(text);
  Ipv4 v4;
  if (inet_pton(AF_INET, host.c_str(), v4.data()) == 1) return is_public(v4);
  const std::size_t zone = host.find('%');
  if (zone != std::string::npos) host.resize(zone);
  Ipv6 v6;
  if (inet_pton(AF_INET6, host.c_str(), v6.data()) != 1) return std::nullopt;
  return zone == std::string::npos && is_public(v6);
}

}  // namespace vitrove
