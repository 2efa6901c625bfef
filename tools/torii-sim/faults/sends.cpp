// SPDX-License-Identifier: Apache-2.0
// An alltoall of unequal blocks as sends and receives in a group.
#include <algorithm>
#include <random>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::faults {
namespace {

/// The tag of a send tells its sender, so that a receive from any rank gets the right one.
torii_status receive_from(torii_team* team, int peer, std::byte* to, std::size_t count, torii_type type,
                          std::uint64_t manner) {
  const int from = manner % 3 == 0 ? TORII_ANY_RANK : peer;
  const int tag = manner % 3 == 1 ? TORII_ANY_TAG : peer;
  return torii_recv(team, to, count, type, from, tag, nullptr);
}

}  // namespace

torii_status send_and_receive(torii_team* team, const CallSpec& spec, Place place, const void* input, void* result) {
  Words words;
  write_words(words, spec, place, input, result);
  const std::size_t bytes = torii_type_bytes(spec.type);
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  const auto* next_from = static_cast<const std::byte*>(input);
  auto* next_to = static_cast<std::byte*>(result);
  std::vector<int> order;
  for (int peer = 0; peer < place.ranks; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    from.push_back(next_from);
    to.push_back(next_to);
    next_from += words.input_counts[at] * bytes;
    next_to += words.result_counts[at] * bytes;
    order.push_back(peer);
    order.push_back(peer + place.ranks);
  }
  // Each rank begins its sends, and its receives, in an order of its own.
  std::mt19937_64 random(mixed(spec.seed) + static_cast<std::uint64_t>(place.rank));
  std::shuffle(order.begin(), order.end(), random);
  torii_status status = torii_group_begin(team);
  for (std::size_t i = 0; i < order.size() && status == TORII_OK; ++i) {
    const int peer = order[i] % place.ranks;
    const auto at = static_cast<std::size_t>(peer);
    status = order[i] < place.ranks ? torii_send(team, from[at], words.input_counts[at], spec.type, peer, place.rank)
                                    : receive_from(team, peer, to[at], words.result_counts[at], spec.type, random());
  }
  if (team == nullptr) return status;
  const torii_status ended = torii_group_end(team);
  return status == TORII_OK ? ended : status;
}

}  // namespace torii::faults
