// SPDX-License-Identifier: Apache-2.0
// An alltoall of unequal blocks as sends and receives in a group.
#include <algorithm>
#include <random>
#include <vector>

#include "tools/torii-sim/faults/calls.hpp"
#include "tools/torii-sim/faults/elements.hpp"

namespace torii::faults {
namespace {

/// Tells the sender, so that a receive from any rank gets the right one; and the call, since a rank may leave one out.
int tag_of(const DrawnCall& spec, int sender) { return static_cast<int>(mixed(spec.seed) % 1'000'000) * 64 + sender; }

}  // namespace

torii_status send_and_receive(torii_team* team, const DrawnCall& spec, Place place, const void* input, void* result) {
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
    if (order[i] < place.ranks) {
      status = torii_send(team, from[at], words.input_counts[at], spec.type, peer, tag_of(spec, place.rank));
    } else {
      const int rank = random() % 2 == 0 ? TORII_ANY_RANK : peer;
      status = torii_recv(team, to[at], words.result_counts[at], spec.type, rank, tag_of(spec, peer), nullptr);
    }
  }
  if (team == nullptr) return status;
  const torii_status ended = torii_group_end(team);
  return status == TORII_OK ? ended : status;
}

}  // namespace torii::faults
