// SPDX-License-Identifier: Apache-2.0
// A plan of one lane and one segment as a straight list of steps: what short vectors run. Everything that does not
// change from call to call (offsets, lengths, slots) is worked out once per (call shape, channel).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/layout.hpp"

namespace torii {

/// One source or target of a step.
struct StraightEnd {
  bool own = false;  ///< the rank's own operand; the rest is unused then
  bool credits = true;
  bool ends_bundle = true;           ///< the slot is full, or empty, after this step
  std::uint32_t messages = 1;        ///< per segment; bundles, where there are any
  std::uint32_t position = 0;        ///< of this step's message, or of its bundle
  std::uint32_t bundle = 1;          ///< messages that share the slot
  std::uint32_t payload_offset = 0;  ///< of the message in the slot: in the signal's own line up to kInlineBytes
  std::uint32_t bundle_offset = 0;   ///< of the message behind the first one of its bundle
  int peer = 0;
  bool stores = true;   ///< targets: false where an earlier stream of its group holds the payload
  bool claims = false;  ///< targets with `sleeping`: lines of later slots are claimed; not of cells, which share theirs
  bool remote = false;  ///< targets: `slots` are the own send slots
  std::uint32_t stream = 0;
  std::uint32_t credit_group = 1;
  /// The mark of Transport::sleeping(), for signals and credits that are stored without put(); nullptr: through put().
  const std::atomic<std::uint32_t>* sleeping = nullptr;
  std::byte* slots = nullptr;
  std::byte* payload_slots = nullptr;  ///< with payload_offset: where the payload stands
  std::uint64_t slots_offset = 0;
  std::uint64_t stride = 0;           ///< from one slot to the next; where messages stand in cells, `slots` are those
  std::byte* credit_words = nullptr;  ///< targets: in the own arena; sources with `sleeping`: in the sender's
  std::uint64_t credits_offset = 0;   ///< sources: in the sender's arena
  /// Targets with `sleeping`: InstalledStream::free_until.
  std::uint64_t* free_until = nullptr;
};

struct StraightStep {
  std::uint32_t first_source = 0;
  std::uint32_t source_count = 0;
  std::uint32_t first_target = 0;
  std::uint32_t target_count = 0;
  std::uint32_t flow = 0;  ///< index into InstalledPlan::stores
  bool keep = false;
  bool may_stream = false;  ///< long enough, and stored into peers' arenas: through or past the caches
  Fold fold = Fold::left;
  std::size_t offset_bytes = 0;  ///< of the block in the vector
  std::size_t length_bytes = 0;
};

struct Straight {
  std::vector<StraightStep> steps;
  std::vector<StraightEnd> sources;
  std::vector<StraightEnd> targets;
};

/// The straight form of `plan` for one layout, or nullptr when the plan has more than one lane, the layout more than
/// one segment, or a stream travels other than by value in the vector's own type.
std::unique_ptr<Straight> straighten(InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes,
                                     std::size_t element_bytes, Transport& transport);

}  // namespace torii
