// SPDX-License-Identifier: Apache-2.0
// A plan put in place: its streams' slots, credits and ready tokens have addresses in the members' arenas. Installing
// needs no message: the plan is a pure function, so every rank works out its peers' plans and finds the other end of
// each stream.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/timed_choice.hpp"
#include "runtime/execution/engine_share.hpp"
#include "runtime/execution/store_choice.hpp"
#include "runtime/execution/transport.hpp"
#include "runtime/execution/words.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// The same on all ranks: staging = slots and cells of in-streams, then ready lines, then credit lines of out-streams,
/// then, where the ranks stand on several nodes, a send slot for every slot of the out-streams. Of a sweep the ready
/// lines are two for each rank of the team.
struct StagingShape {
  std::size_t slot_bytes = 0;         ///< header line and payload
  std::size_t cells_offset = 0;       ///< of a stream's cells, one for each slot, from its first slot; 0: it has none
  std::size_t wide_cells_offset = 0;  ///< likewise
  std::size_t stream_bytes = 0;       ///< all slots and cells of one stream
  std::size_t ready_offset = 0;
  std::size_t credits_offset = 0;
  std::size_t credit_bytes = 0;  ///< credit words of one stream, whole lines
  std::size_t send_offset = 0;
  std::size_t total_bytes = 0;
};
StagingShape staging_shape(const Plan& plan, std::size_t segment_bytes, bool wide, bool several_nodes);

/// Credit words of a stream whose messages are credited in groups, at most.
inline constexpr int kCreditGroupsMax = 16;
/// How many consecutive messages of a stream to another node share a credit.
int credit_group(const Stream& stream, int slots);

/// A stream's end with addresses. Message numbers count from the installation and never restart.
struct InstalledStream {
  Stream stream;
  int peer = 0;           ///< rank in the context
  bool remote = false;    ///< the peer stands on another node: all its messages go by value
  int announcement = -1;  ///< lend and land: index into InstalledPlan::announced or ::announces
  int share = -1;         ///< index into InstalledPlan::shares; in: of a stream to the same peer
  int first_engine = 0;   ///< remote: first_engine and those after it, engine_count in all, take turns
  int engine_count = 1;
  int credit_group = 1;  ///< so many consecutive messages are credited together; a power of two that divides the slots
  int leader = -1;       ///< out: the stream whose slots hold the payload for a group; -1: alone
  std::byte* slots = nullptr;          ///< in: own arena. out: the peer's slots; if remote the own send slots
  std::byte* payload_slots = nullptr;  ///< where payloads behind the signal's line stand: `slots`, or the leader's
  std::uint64_t slots_offset = 0;      ///< in the receiver's arena
  std::byte* credits = nullptr;        ///< out: own arena
  std::uint64_t credits_offset = 0;    ///< in the sender's arena
  /// In: of each group of slots how many messages have been taken that have no credit yet. Groups go on across calls.
  std::array<std::uint8_t, kCreditGroupsMax> taken{};
  std::uint64_t free_until = 0;  ///< out, of straight lists: all messages below it may be sent
};

/// The node of each rank of a team, by team rank.
using Nodes = std::vector<int>;

/// Streams that always carry the same payload: it is stored once, in the slots of the first of them, and read there by
/// all receivers. Returns for each out-stream of the plan the first stream of its group, or -1 when it is alone.
/// Signals and credits stay each stream's own, so nothing else changes: a slot is filled anew when the step has all
/// their credits. Streams to other nodes form groups of their own: those share the send slot, and each receiver gets a
/// copy.
std::vector<int> group_leaders(const Plan& plan, const Nodes& nodes);

/// Whether a rank whose operand lies in its private memory lets its readers take it from there (way 1) or sends it
/// through slots (way 0). Ranks count calls alike, so they try both in the same calls; then each takes what has made
/// its own calls shorter. One choice per power of two of the vector's bytes.
struct LendChoice {
  /// Below this a call is too short for a system call per reader.
  static constexpr std::size_t kBytesMin = std::size_t{64} << 10;
  /// What one read takes at most: a value that is folded, or goes on, should still be in the second-level cache then.
  static constexpr std::size_t kReadBytes = std::size_t{128} << 10;
  std::array<TimedChoice, 16> by_size;
  TimedChoice& of(std::size_t bytes) noexcept {
    const auto size = static_cast<std::size_t>(std::bit_width(bytes / kBytesMin));
    return by_size[std::min(size, by_size.size() - 1)];
  }
};

/// Blocks of a plan from one to another; none as it is made.
struct BlockRange {
  int first = INT_MAX;
  int last = -1;
  void add(int block) noexcept {
    first = std::min(first, block);
    last = std::max(last, block);
  }
};

/// A pair of ranks of one node between which operands are lent or results landed: one ready line per call.
struct Announcement {
  int peer = 0;                   ///< rank in the context
  std::byte* line = nullptr;      ///< announces: the peer's line; announced: own arena
  bool lands = false;             ///< announces: the peer also stores into this rank's result
  std::uint64_t line_offset = 0;  ///< in the arena of the rank that reads it
  BlockRange reads;               ///< announced: what this rank reads of the peer's operand
  BlockRange stores;              ///< and stores into its result
};

/// A peer of a sweep: the streams with it, and the two lines in turn by which each tells the other where its blocks
/// are. Two, because a rank writes its next token when it has heard one token since, not when its own has been read.
struct SweepPeer {
  int rank = 0;          ///< in the team
  int context_rank = 0;  ///< in the context
  bool remote = false;   ///< on another node: no tokens, and all goes through slots
  InstalledStream out;
  InstalledStream in;
  std::byte* tells = nullptr;  ///< the peer's lines for this rank's tokens
  std::uint64_t tells_offset = 0;
  const std::byte* hears = nullptr;  ///< own arena
  std::uint64_t sent = 0;            ///< messages of all calls so far; likewise the others
  std::uint64_t taken = 0;
  std::uint64_t tokens = 0;
};

struct InstalledSweep {
  std::vector<SweepPeer> peers;         ///< those that this rank sends to or takes from, ascending
  std::vector<std::uint32_t> sends_in;  ///< the order of sending, as indices into `peers`
  std::vector<std::uint32_t> takes_in;  ///< the order of taking
};

struct InstalledPlan {
  Plan plan;
  StagingShape shape;
  bool wide = false;    ///< wide streams hold float
  bool remote = false;  ///< a stream comes from another node or goes there
  /// What a put to another node may take from where it stands, because nothing else is stored there in the same call:
  bool result_is_final = false;  ///< the result, once it has been kept: no step keeps a block that another has kept
  bool operand_in_place_stays = false;  ///< also an operand that is the result's memory
  std::vector<InstalledStream> in;
  std::vector<InstalledStream> out;
  std::vector<Announcement> announces;  ///< this rank tells these peers where its buffers are
  std::vector<Announcement> announced;  ///< these peers tell this rank
  std::vector<EngineShare> shares;      ///< of the out-streams whose messages engines draw
  std::vector<StoreChoices> stores;     ///< per flow, the flows of all lanes one after the other
  bool lends_readable = false;          ///< this rank lends to readers who only copy and can read its private memory
  LendChoice lend;
  std::unique_ptr<std::byte[]> read;  ///< LendChoice::kReadBytes for what is read and only goes on
  std::uint64_t segments_done = 0;    ///< segments of all calls so far: the base of message numbers
  std::uint64_t last_begun = 0;       ///< segments_done when the last finished call began
  std::uint64_t calls = 0;
  InstalledSweep sweep;  ///< empty where the plan has none
  /// The number under which the team put the plan in place, while members are not known to agree on it; otherwise 0.
  std::uint64_t unagreed = 0;
};

/// The cells of a stream that a call's messages stand in.
struct Cells {
  std::size_t bytes = 0;   ///< of one; 0: the messages stand in slots
  std::size_t offset = 0;  ///< from the stream's first slot
};

/// Those of a call on streams between ranks of one node. Equal on all ranks.
inline Cells cells_of(const StagingShape& shape, const Layout& layout) noexcept {
  if (shape.cells_offset == 0) return {};
  if (layout.longest_bytes() <= cell_payload_bytes(kCellBytes)) return {kCellBytes, shape.cells_offset};
  if (layout.longest_bytes() <= cell_payload_bytes(kWideCellBytes)) return {kWideCellBytes, shape.wide_cells_offset};
  return {};
}

/// What installing needs to know of the team.
struct Placement {
  Transport* transport = nullptr;
  std::vector<int> context_ranks;              ///< of the members, in team order
  std::vector<std::uint64_t> staging_offsets;  ///< where this plan's staging begins in each member's arena
  std::function<Plan(int)> plan_of;            ///< the plan of a member, by team rank
};

/// Throws Error{internal} when a stream has no other end: a plan that the verifier would reject.
InstalledPlan install(Plan plan, std::size_t segment_bytes, bool wide, const Placement& placement);

}  // namespace torii
