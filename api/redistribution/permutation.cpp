// SPDX-License-Identifier: Apache-2.0
// Permutations of items. Each item travels with its position, which the receiver checks.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "api/redistribution/redistribution.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

using Words = std::vector<std::uint64_t>;
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kPositionBytes = sizeof(std::uint64_t);

/// The arguments of a rank, which all ranks exchange first.
struct Share {
  std::uint64_t count;
  std::uint64_t result_count;
  std::uint64_t item_bytes;
  std::uint64_t lacks_memory;  ///< 1: there are items, but their memory is NULL
};

Status run_words(Team& team, Collective collective, const void* input, void* result, std::size_t words) {
  CallDescription call = internal_call(collective, input, result);
  call.spec.count = words;
  call.spec.type = Type::u64;
  if (combines(collective)) call.spec.op = number_of(Op::min);
  return team.operations().run(call);
}

/// By rank: its first position; one element more has the number of all positions. All ranks throw the same errors.
Words starts_of(const std::vector<Share>& shares) {
  constexpr std::uint64_t kMost = kNone / 4;
  Words starts = {0};
  std::uint64_t items = 0;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const Share& share = shares[rank];
    const std::string who = " of rank " + std::to_string(rank);
    if (share.lacks_memory != 0) {
      invalid("input, destinations or result" + who + " is NULL, but its count is " + std::to_string(share.count) +
              " and its result_count " + std::to_string(share.result_count));
    }
    if (share.item_bytes != shares[0].item_bytes || share.item_bytes == 0) {
      invalid("item_bytes" + who + " is " + std::to_string(share.item_bytes) + ", of rank 0 " +
              std::to_string(shares[0].item_bytes) + "; it must be at least 1 and the same on all ranks");
    }
    const std::uint64_t most =
        share.item_bytes > kMost ? 0 : kMost / shares.size() / (share.item_bytes + kPositionBytes);
    if (share.count > most || share.result_count > most) {
      invalid("count" + who + " is " + std::to_string(share.count) + " and result_count " +
              std::to_string(share.result_count) + ", whose bytes overflow; the most is " + std::to_string(most));
    }
    items += share.count;
    starts.push_back(starts.back() + share.result_count);
  }
  if (starts.back() != items) {
    invalid("all ranks together have " + std::to_string(items) + " items and room for " +
            std::to_string(starts.back()) + "; the sums of count and result_count must be equal");
  }
  return starts;
}

class Permuter {
 public:
  Permuter(Team& team, Scratch& scratch, const Permutation& given)
      : team_(team),
        scratch_(scratch),
        given_(given),
        ranks_(static_cast<std::size_t>(team.ranks())),
        record_bytes_(kPositionBytes + given.item_bytes) {}

  Status run() {
    const std::string own_fault = missing_memory();
    const Share own = {given_.count, given_.result_count, given_.item_bytes, own_fault.empty() ? 0U : 1U};
    std::vector<Share> shares(ranks_);
    Status status =
        run_words(team_, Collective::all_gather, &own, shares.data(), sizeof(Share) / sizeof(std::uint64_t));
    if (status != Status::ok) return status;
    if (!own_fault.empty()) invalid(own_fault);
    starts_ = starts_of(shares);
    status = exchange_counts();
    if (status == Status::ok) status = move();
    if (status == Status::ok) status = check_positions();
    return status;
  }

 private:
  /// The error if an address is NULL although it is needed; empty if none is. The rank must not fail alone, because all
  /// others wait for it.
  std::string missing_memory() const {
    if (given_.count != 0 && (given_.input == nullptr || given_.destinations == nullptr)) {
      return "input or destinations is NULL, but count is " + std::to_string(given_.count);
    }
    if (given_.result_count != 0 && given_.result == nullptr) {
      return "result is NULL, but result_count is " + std::to_string(given_.result_count);
    }
    return "";
  }

  std::size_t owner_of(std::uint64_t position) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), position);
    return static_cast<std::size_t>(after - starts_.begin()) - 1;
  }

  /// Exchanges the numbers of items between ranks. A rank with an invalid destination sends kNone to all ranks instead.
  Status exchange_counts() {
    sends_.assign(ranks_, 0);
    takes_.assign(ranks_, 0);
    std::string own_fault;
    for (std::size_t item = 0; item < given_.count && own_fault.empty(); ++item) {
      const std::uint64_t to = given_.destinations[item];
      if (to < starts_.back()) {
        ++sends_[owner_of(to)];
      } else {
        own_fault = "destinations[" + std::to_string(item) + "] of rank " + std::to_string(team_.rank()) + " is " +
                    std::to_string(to) + "; it must be below " + std::to_string(starts_.back());
      }
    }
    if (!own_fault.empty()) sends_.assign(ranks_, kNone);
    const Status status = run_words(team_, Collective::alltoall, sends_.data(), takes_.data(), 1);
    if (status != Status::ok) return status;
    if (!own_fault.empty()) invalid(own_fault);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (takes_[rank] != kNone) continue;
      invalid("destinations of rank " + std::to_string(rank) + " has a position beyond " +
              std::to_string(starts_.back() - 1) + ", the last one there is");
    }
    return Status::ok;
  }

  /// Moves all items. A record consists of a position, counted from the receiver's first one, and the item.
  Status move() {
    const std::uint64_t came = std::accumulate(takes_.begin(), takes_.end(), std::uint64_t{0});
    const std::size_t packed_bytes = (given_.count * record_bytes_ + 63) / 64 * 64;
    std::byte* packed = scratch_.reserve(team_, packed_bytes + came * record_bytes_, kScratchPurpose);
    pack(packed);
    std::vector<std::size_t> send_bytes;
    std::vector<std::size_t> take_bytes;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      send_bytes.push_back(sends_[rank] * record_bytes_);
      take_bytes.push_back(takes_[rank] * record_bytes_);
    }
    CallDescription call = internal_call(Collective::alltoall, packed, packed + packed_bytes);
    call.set_blocks({.input_counts = send_bytes.data(), .result_counts = take_bytes.data()});
    const Status status = team_.operations().run(call);
    if (status == Status::ok) {
      unpack(packed + packed_bytes, came);
    } else {
      scratch_.abandon();
    }
    return status;
  }

  void pack(std::byte* packed) const {
    std::vector<std::byte*> next(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      next[rank] = packed;
      packed += sends_[rank] * record_bytes_;
    }
    const std::byte* from = given_.input;
    for (std::size_t item = 0; item < given_.count; ++item, from += given_.item_bytes) {
      const std::size_t rank = owner_of(given_.destinations[item]);
      const std::uint64_t position = given_.destinations[item] - starts_[rank];
      std::memcpy(next[rank], &position, kPositionBytes);
      std::memcpy(next[rank] + kPositionBytes, from, given_.item_bytes);
      next[rank] += record_bytes_;
    }
  }

  void unpack(const std::byte* record, std::uint64_t records) {
    std::vector<bool> filled(given_.result_count, false);
    for (std::uint64_t i = 0; i < records; ++i, record += record_bytes_) {
      std::uint64_t position = 0;
      std::memcpy(&position, record, kPositionBytes);
      if (filled[position]) note_bad(position);
      filled[position] = true;
      std::memcpy(given_.result + position * given_.item_bytes, record + kPositionBytes, given_.item_bytes);
    }
    const auto empty = std::find(filled.begin(), filled.end(), false);
    if (empty != filled.end()) note_bad(static_cast<std::uint64_t>(empty - filled.begin()));
  }

  void note_bad(std::uint64_t position) {
    bad_ = std::min(bad_, starts_[static_cast<std::size_t>(team_.rank())] + position);
  }

  /// Fails on all ranks if a rank has a position that did not get exactly one item. As many items as positions exist,
  /// so otherwise each position got one.
  Status check_positions() {
    std::uint64_t first_bad = kNone;
    const Status status = run_words(team_, Collective::allreduce, &bad_, &first_bad, 1);
    if (status != Status::ok || first_bad == kNone) return status;
    invalid("position " + std::to_string(first_bad) +
            " of the result got several items or none; destinations of all ranks together must hold each number from "
            "0 to " +
            std::to_string(starts_.back() - 1) + " once");
  }

  Team& team_;
  Scratch& scratch_;
  const Permutation& given_;
  std::size_t ranks_;
  std::size_t record_bytes_;
  Words starts_;
  Words sends_;
  Words takes_;
  std::uint64_t bad_ = kNone;  ///< the lowest position of this rank's result that did not get exactly one item
};

}  // namespace

Status permute(Team& team, Scratch& scratch, const Permutation& permutation) {
  return Permuter(team, scratch, permutation).run();
}

}  // namespace torii
