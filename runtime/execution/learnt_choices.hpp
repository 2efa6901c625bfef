// SPDX-License-Identifier: Apache-2.0
// A team finds out by timing which ways of moving data are faster. Installed plans come and go with shapes and roots,
// and each channel has its own. So the choices are kept here, and all plans of the team share them.
//
// Choices belong to a team and not to its context: another team may have other, more distant members, and other
// threads may run its calls. Only who holds the team (Entry) gets here, so nothing here is atomic. The memory into
// which private operands are read is the team's for the same reasons.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/base/timed_choice.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/execution/store_choice.hpp"
#include "runtime/plan/operation.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// Whether a rank whose operand is in its private memory lets readers take it from there (way 1) or sends it through
/// slots (way 0). The choice is by the bytes of the vector; for blocks of unequal lengths, by half of the bytes that
/// the rank sends and takes. The cost is the time of the rank's own call.
struct PrivateReadChoice : ChoicesBySize<TimedChoice, std::size_t{64} << 10> {
  /// Below this a call is too short for a system call per reader.
  static constexpr auto kBytesMin = tuned<std::size_t>("reads.bytes_min");
  /// The most that one read takes: a value that is then folded or forwarded should still be in the second-level cache.
  static constexpr auto kReadBytes = tuned<std::size_t>("reads.portion_bytes");
};

/// Numbers the calls of a collective, those of like size apart: the turns of private reads. A call is as short as all
/// its members let it be. So in a trial all of them must use one way in the same call (TimedChoice::common). Which
/// ranks have an operand to read, and where it is, differs from rank to rank. So every member counts every call, by
/// what is equal on all ranks: collective and bytes of the vector. Calls that are in flight at once may begin in
/// another order on another rank. Such a trial says less, and the numbers agree again afterwards.
class CallTurns {
 public:
  /// The number of the call. Lengths below kBytesMin need none.
  std::uint32_t next(std::size_t bytes) noexcept { return turns_[PrivateReadChoice::index(bytes)]++; }
  /// For unequal blocks. A rank does not know the lengths of the others, so these calls are counted together.
  std::uint32_t next_unequal() noexcept { return turns_[0]++; }

 private:
  std::array<std::uint32_t, PrivateReadChoice::kSizes> turns_{};
};

class LearntChoices {
 public:
  /// For the flow, whose times are compared with those of flows that do like work alone. `receives`: as StoreChoice has
  /// it. Addresses stay. Throws std::bad_alloc.
  StoreChoices& stores(const Flow& flow, bool receives) {
    bool takes = false;
    for (const StreamEnd& source : flow.sources) takes = takes || source.stream != kOwn;
    return stores_of(receives, takes, flow.sources.size() > 1, flow.keep);
  }
  /// For a pairwise exchange, which copies the rank's own blocks.
  StoreChoices& exchange_stores(bool receives) { return stores_of(receives, false, false, false); }
  /// Calls of one collective share a choice if streams come in to this rank in all of them, or in none. Addresses stay.
  /// Throws std::bad_alloc.
  PrivateReadChoice& private_reads(Collective collective, bool receives) {
    auto& choice = private_reads_[2 * index_of(collective) + (receives ? 1 : 0)];
    if (choice == nullptr) choice = std::make_unique<PrivateReadChoice>();
    return *choice;
  }
  CallTurns& turns(Collective collective) noexcept { return turns_[index_of(collective)]; }
  /// Memory for operands that this rank reads and only forwards, which one step at a time uses. It has no pages until
  /// something is read. Throws std::bad_alloc.
  void take_read_memory() {
    if (read_memory_ == nullptr) read_memory_.reset(new std::byte[PrivateReadChoice::kReadBytes]);
  }
  /// PrivateReadChoice::kReadBytes, once they are taken.
  std::byte* read_memory() const noexcept { return read_memory_.get(); }

 private:
  static std::size_t index_of(Collective collective) noexcept { return static_cast<std::size_t>(collective); }
  StoreChoices& stores_of(bool receives, bool takes, bool folds, bool keeps) {
    auto& choices = stores_[(receives ? 8 : 0) + (takes ? 4 : 0) + (folds ? 2 : 0) + (keeps ? 1 : 0)];
    if (choices == nullptr) choices = std::make_unique<StoreChoices>(receives);
    return *choices;
  }

  std::array<std::unique_ptr<StoreChoices>, 16> stores_;
  std::array<std::unique_ptr<PrivateReadChoice>, 2 * static_cast<std::size_t>(kCollectiveCount)> private_reads_;
  std::array<CallTurns, static_cast<std::size_t>(kCollectiveCount)> turns_;
  std::unique_ptr<std::byte[]> read_memory_;
};

}  // namespace torii
