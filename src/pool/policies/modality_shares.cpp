#include "pool/policies/modality_shares.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "vitrove/error.h"

namespace vitrove {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

// Sums of parts such as 0.7 and 0.3 may end a little above 1.
constexpr double rounding = 1e-9;

void check(std::span<const ModalityShare> shares) {
  double promised = 0;
  for (const ModalityShare& share : shares) {
    const std::string name(to_string(share.modality));
    if (!(share.least >= 0 && share.least <= share.most && share.most <= 1)) {
      refuse("the shares of " + name + " must be 0 <= least <= most <= 1");
    }
    const auto same = [&](const ModalityShare& other) { return other.modality == share.modality; };
    if (std::ranges::count_if(shares, same) > 1) refuse("two shares are given for " + name);
    promised += share.least;
  }
  if (promised > 1 + rounding) refuse("the least shares together are more than the pool");
}

double parse_part(std::string_view text, double when_empty) {
  if (text.empty()) return when_empty;
  double part = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse("\"" + std::string(text) + "\" is no part of the pool, 0 to 1");
  }
  return part;
}

}  // namespace

ModalityShare parse_modality_share(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.find(':', equals);
  if (equals == std::string_view::npos || colon == std::string_view::npos) {
    refuse("\"" + std::string(text) + "\" is no share; write image=0.2:0.8");
  }
  const auto modality = parse_modality(text.substr(0, equals));
  if (!modality)
    refuse("a share is of image, video or audio, not of \"" + std::string(text.substr(0, equals)) +
           "\"");
  const ModalityShare share{*modality, parse_part(text.substr(equals + 1, colon - equals - 1), 0),
                            parse_part(text.substr(colon + 1), 1)};
  check({&share, 1});
  return share;
}

ModalityShares::ModalityShares(std::string_view policy, std::span<const ModalityShare> shares,
                               std::uint64_t pool_bytes) {
  check(shares);
  for (Part& part : parts_) part.policy = make_eviction_policy(policy);
  const auto bytes = [&](double share) {
    return static_cast<std::uint64_t>(share * static_cast<double>(pool_bytes));
  };
  for (const ModalityShare& share : shares) {
    Part& part = parts_[part_for(share.modality)];
    part.least = bytes(share.least);
    if (share.most < 1) part.most = bytes(share.most);
  }
}

void ModalityShares::on_insert(PolicySlot slot, const PolicyItem& item) {
  const std::size_t number = part_for(item.modality);
  part_of_.reach(slot);
  if (slot >= bytes_of_.size()) {
    bytes_of_.resize(std::max<std::size_t>(64, 2 * (std::size_t{slot} + 1)));
  }
  // The part knows the slot before a hit can be led to it.
  parts_[number].policy->on_insert(slot, item);
  parts_[number].bytes += item.bytes;
  bytes_of_[slot] = item.bytes;
  part_of_[slot].store(static_cast<std::uint8_t>(number), std::memory_order_relaxed);
}

void ModalityShares::on_erase(PolicySlot slot) {
  Part& part = parts_[part_of_[slot].load(std::memory_order_relaxed)];
  part.policy->on_erase(slot);
  part.bytes -= bytes_of_[slot];
}

// The item would put its modality above what it may have.
bool ModalityShares::keeps_to_itself(const RoomWanted& wanted) const {
  if (!wanted.modality) return false;
  const Part& own = parts_[part_for(*wanted.modality)];
  return own.bytes > own.most || wanted.bytes > own.most - own.bytes;
}

bool ModalityShares::may_go_for(const Part& part, const RoomWanted& wanted) const {
  if (wanted.modality && &part == &parts_[part_for(*wanted.modality)]) return true;
  return part.bytes > part.least && !keeps_to_itself(wanted);
}

bool ModalityShares::may_go_for(PolicySlot slot, const RoomWanted& wanted) const {
  return may_go_for(parts_[part_of_[slot].load(std::memory_order_relaxed)], wanted);
}

std::uint64_t ModalityShares::spare(const Part& part, const RoomWanted& wanted) const {
  if (wanted.modality && &part == &parts_[part_for(*wanted.modality)]) return part.bytes;
  return may_go_for(part, wanted) ? part.bytes - part.least : 0;
}

std::uint64_t ModalityShares::bytes_that_go_for(const RoomWanted& wanted) const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += spare(part, wanted);
  return bytes;
}

std::vector<PolicySlot> ModalityShares::that_stay(std::span<const PolicySlot> slots,
                                                  const RoomWanted& wanted) const {
  std::array<std::uint64_t, part_count> left{};
  std::ranges::transform(parts_, left.begin(),
                         [&](const Part& part) { return spare(part, wanted); });
  std::vector<PolicySlot> stay;
  for (const PolicySlot slot : slots) {
    std::uint64_t& of_part = left[part_of_[slot].load(std::memory_order_relaxed)];
    if (bytes_of_[slot] > of_part) {
      stay.push_back(slot);
    } else {
      of_part -= bytes_of_[slot];
    }
  }
  return stay;
}

// Who is furthest above his most share; when nobody is, whose first candidate has the lowest rank.
ModalityShares::Part* ModalityShares::first_to_give(std::span<Part* const> parts) const {
  Part* first = nullptr;
  std::pair<std::uint64_t, double> best;
  for (Part* const part : parts) {
    const auto rank = part->policy->lowest_rank();
    if (!rank) continue;
    const std::uint64_t excess = part->bytes > part->most ? part->bytes - part->most : 0;
    const std::pair standing{~excess, *rank};
    if (first != nullptr && standing >= best) continue;
    first = part;
    best = standing;
  }
  return first;
}

std::optional<PolicySlot> ModalityShares::next_victim_for(const RoomWanted& wanted,
                                                          const Take& take) {
  std::vector<Part*> givers;
  for (Part& part : parts_) {
    if (may_go_for(part, wanted)) givers.push_back(&part);
  }
  while (Part* const giver = first_to_give(givers)) {
    const double rank = giver->policy->lowest_rank().value_or(0);
    if (const auto victim = giver->policy->next_victim(take)) {
      note_victim(rank);
      return victim;
    }
    std::erase(givers, giver);  // all of its entries are in use
  }
  return std::nullopt;
}

std::optional<double> ModalityShares::lowest_rank() {
  std::optional<double> lowest;
  for (Part& part : parts_) {
    const auto rank = part.policy->lowest_rank();
    if (rank && (!lowest || *rank < *lowest)) lowest = rank;
  }
  return lowest;
}

void ModalityShares::note_victim(double rank) {
  for (Part& part : parts_) part.policy->note_victim(rank);
}

}  // namespace vitrove
