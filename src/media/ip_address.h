// Which addresses belong to the public Internet.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/socket.h>

namespace vitrove {

using Ipv4 = std::array<std::uint8_t, 4>;
using Ipv6 = std::array<std::uint8_t, 16>;

// False for everything that the IANA special-purpose registries reserve (loopback, private,
// link-local with the metadata services, carrier NAT, documentation, benchmarking, multicast, ...)
// and for the one public-looking address at which a cloud host answers its own machines.
bool is_public(const Ipv4& address);

// Global unicast only, without documentation, Teredo and other special blocks. Addresses that carry
// an IPv4 address (mapped, NAT64, 6to4) are as public as that one is.
bool is_public(const Ipv6& address);

// False for families other than IPv4 and IPv6.
bool is_public(const sockaddr& address, std::size_t size);

// Dotted or colon form, as inet_pton takes it; nothing when `text` is neither. A zone makes it
// not public.
std::optional<bool> is_public_literal(std::string_view text);

}  // namespace vitrove
