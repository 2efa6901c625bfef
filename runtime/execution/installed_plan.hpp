// SPDX-License-Identifier: Apache-2.0
// An installed plan: its streams are bound to the standing rings of a channel, and its buffer offers have lines there.
// Installing needs no message and no plan of a peer: which ring a stream has follows from the rank's own plan, and
// where that ring is, from formulas.
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/execution/engine_balancer.hpp"
#include "runtime/execution/learnt_choices.hpp"
#include "runtime/execution/payload_groups.hpp"
#include "runtime/execution/rings.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/operation.hpp"
#include "runtime/plan/plan.hpp"
#include "runtime/rings/channel_rings.hpp"

namespace torii {

/// A stream with the addresses of its end.
struct InstalledIn {
  Stream stream;
  int offer = -1;  ///< read_in_place: index into InstalledPlan::offers_in
  ReceiveRing ring;
};
struct InstalledOut {
  Stream stream;
  int offer = -1;   ///< write_in_place: index into InstalledPlan::offers_in
  int leader = -1;  ///< the stream of its group that holds the payload for all; -1: alone
  SendRing ring;
};

/// Reads of operands in private memory.
struct PrivateReads {
  bool are_offered = false;  ///< all readers of the operand only copy, and can read this rank's private memory
  PrivateReadChoice* choice = nullptr;  ///< if they are offered
  CallTurns* turns = nullptr;           ///< of the plan's collective
  bool are_made = false;                ///< this rank reads operands of others
};

/// A range of blocks of a plan; at first empty.
struct BlockRange {
  int first = INT_MAX;
  int last = -1;
  void add(int block) noexcept {
    first = std::min(first, block);
    last = std::max(last, block);
  }
};

/// The line of one buffer offer each call, between two ranks of one node that read operands or write results in place.
struct OfferLine {
  int peer = 0;                   ///< rank in the context
  std::byte* line = nullptr;      ///< offers_out: the peer's line; offers_in: own arena
  bool writes_result = false;     ///< offers_out: the peer also stores into this rank's result
  std::uint64_t line_offset = 0;  ///< in the arena of the rank that reads it
  BlockRange reads;               ///< offers_in: what this rank reads of the peer's operand
  int operand_last = 0;           ///< and the last operand that it reads, if the peer has several
  BlockRange stores;              ///< and stores into its result
};

/// A peer of a pairwise exchange: the streams with it, and the lines of the buffer offers between the two ranks. Each
/// uses two lines in turn, because a rank writes its next offer when it has received one, not when its own was read.
struct ExchangePeer {
  int rank = 0;          ///< in the team
  int context_rank = 0;  ///< in the context
  bool remote = false;   ///< on another node: no buffer offers, all through slots
  bool sends = false;    ///< this rank sends to the peer
  bool takes = false;    ///< and takes from it
  InstalledOut out;
  InstalledIn in;
  std::byte* their_lines = nullptr;  ///< the peer's lines for this rank's offers
  std::uint64_t their_lines_offset = 0;
  const std::byte* own_lines = nullptr;  ///< for the peer's offers
  /// Messages of all calls so far; likewise the others. They are taken over as each call begins.
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;
  std::uint64_t offers_made = 0;
};

struct InstalledExchange {
  std::vector<ExchangePeer> peers;      ///< those that this rank sends to or takes from, ascending
  std::vector<std::uint32_t> sends_in;  ///< the order of sending, as indices into `peers`
  std::vector<std::uint32_t> takes_in;  ///< the order of taking
};

/// Which rings of a channel a plan uses, and how.
struct RingUses {
  /// How a call moves the numbers of a ring on.
  struct Numbering {
    RingEnd* ring = nullptr;
    std::uint64_t messages = 0;  ///< per segment
  };
  struct PayloadUse {
    SendEnd* ring = nullptr;
    std::uint64_t messages = 0;
    std::size_t bundle = 1;
    Widening widening = Widening::none;
    bool is_operand = false;  ///< that the peer reads in this rank's arena if it can
    bool is_distant = false;  ///< sent from the outbox to another node
    bool is_awaited = true;   ///< another rank of the node may still read the outbox when the call has ended
    int leader = -1;          ///< the use whose payloads this one shares; -1: it has its own
    // As of the last call, in Parts:
    bool is_used = false;
    std::size_t part = 0;   ///< from the extent's beginning
    std::size_t bytes = 0;  ///< from one payload to the next
  };
  /// How a call's payloads divide its extent.
  struct Parts {
    // They hold for calls with these:
    std::size_t longest_bytes = 0;  ///< Layout::longest_bytes(); 0: none yet
    std::int64_t segments = 0;
    std::size_t element_bytes = 0;
    bool reads_input = false;
    std::size_t readers = 0;
    std::size_t extent_bytes = 0;
  };
  EntryOrder entries;
  PlaceOrder places;                 ///< of each ring in the outbox: the plan's slots
  std::size_t short_most = 0;        ///< all messages fit into their lines if the longest has so many bytes
  std::uint64_t every_entry = 1;     ///< RunningCall::publish_every then
  std::uint64_t every_payload = 1;   ///< and otherwise
  std::vector<Numbering> numbering;  ///< of the rings in both directions
  std::vector<ReceiveEnd*> incoming;
  std::vector<PayloadUse> payloads;  ///< rings to peers whose messages may be in the outbox
  int distant_size = 0;              ///< of the entries of rings to and from other nodes
  int message_size = 0;              ///< the same for a single message, by which calls have this plan
  bool awaits_grants = false;        ///< some receivers there have not told where these are
  bool has_outbox = false;           ///< the outbox of its rings is ready for its calls
  Parts parts;
};

struct InstalledPlan {
  bool is_wide() const noexcept { return widening != Widening::none; }

  Plan plan;
  bool has_cells = false;              ///< short messages within the node are in cells
  Widening widening = Widening::none;  ///< of what wide streams hold; `none`: no stream is wide
  bool remote = false;                 ///< a stream comes from another node or goes there
  /// Memory from which a put to another node may send without a copy, because nothing else is stored there in the same
  /// call:
  bool result_is_final = false;  ///< the result, once it has been kept: no step keeps a block that another has kept
  bool operand_in_place_stays = false;  ///< also an operand that is the result's memory
  std::vector<InstalledIn> in;
  std::vector<InstalledOut> out;
  EntryKind kind = EntryKind::line;       ///< that the rings of `in` and `out` use
  std::vector<OfferLine> offers_out;      ///< this rank tells these peers where its buffers are
  std::vector<OfferLine> offers_in;       ///< these peers tell this rank
  std::vector<EngineBalancer> balancers;  ///< of the out-streams whose engines balance their load
  std::shared_ptr<LearntChoices> learnt;  ///< the team's
  std::vector<StoreChoices*> stores;      ///< per flow, the flows of all lanes one after the other
  PrivateReads private_reads;
  ChannelRings* rings = nullptr;  ///< to which the plan is bound
  RingUses uses;
  InstalledExchange exchange;  ///< empty if the plan has none
};

/// The team's part of an installation.
struct Placement {
  Transport* transport = nullptr;
  std::vector<int> context_ranks;  ///< of the members, in team order
  Collective collective = Collective::barrier;
  std::shared_ptr<LearntChoices> learnt = {};  ///< empty: the plan learns for itself
  ChannelRings* rings = nullptr;               ///< the plan binds_to_rings() of their sizes
  int distant_size = 0;                        ///< distant_size_of() the plan
  int message_size = 0;                        ///< as RingUses has it
  bool may_read = true;                        ///< calls may be so long that operands in private memory are read
  int slots_least = 1;                         ///< the fewest slots with which the plan runs
  Nodes nodes = {};                            ///< of the members; empty: the transport is asked for each of them
};

/// The needs that an algorithm declares for its plans (Algorithm).
struct RingNeeds {
  int slots_least = 1;   ///< the fewest slots with which it runs where senders wait for counts
  int pair_streams = 1;  ///< at most so many streams go from a rank to another one
};
/// A plan that needs at most so many slots runs on rings of that kind: their senders wait for some messages more than
/// slots ask for, as long as these are not counted or credited.
int slots_counted(const KindSizes& kind) noexcept;
/// Whether a plan whose messages have up to so many bytes can use standing rings of these sizes. Equal on all ranks.
bool binds_to_rings(const Plan& plan, const RingNeeds& needs, std::size_t message_bytes, Widening widening,
                    const RingSizes& sizes) noexcept;

/// The outbox of a channel with such rings for calls of this plan alone: two calls have room. Equal on all ranks.
std::size_t own_outbox_bytes(const Plan& plan, std::size_t message_bytes, Widening widening,
                             const RingSizes& sizes) noexcept;

/// Two calls of a pairwise exchange take at most so much of the outbox of such rings, if it has that much.
std::size_t exchange_extents_bytes(const Plan& plan, std::size_t message_bytes, const RingSizes& sizes) noexcept;

/// Whether calls of the plan whose longest block has so many bytes may put payloads into the outbox of its channel, so
/// that the rings must have one.
inline bool needs_outbox(const InstalledPlan& installed, std::size_t longest_bytes) noexcept {
  const bool has_payloads = installed.plan.exchange.exists() || !installed.uses.payloads.empty();
  return has_payloads && longest_bytes > installed.uses.short_most;
}

/// The size of entries between nodes for a plan whose messages have up to so many bytes; an entry holds a bundle of
/// them. kDistantSizes if there are none so large. Equal on all ranks.
int distant_size_of(const Plan& plan, std::size_t message_bytes, Widening widening) noexcept;
/// The kind of rings that the plan uses in a team on several nodes; `distant_size` is its distant_size_of().
inline RingKind ring_kind(const Plan& plan, int distant_size) noexcept {
  return plan.exchange.exists() ? RingKind::exchange : flow_kind(distant_size);
}
/// Looks for what receivers on other nodes have told about their entries; those are `arena_bytes` at most from the
/// beginning of their arenas. False if some have told nothing yet. Throws Error{transport} for an impossible place.
bool take_grants(InstalledPlan& installed, std::uint64_t arena_bytes);

/// Whether that rank has told where the entries for this one are, if it has any in this plan.
bool has_granted(const InstalledPlan& installed, int rank) noexcept;

/// For install(): fills in what calls of a plan do to the rings that its streams have.
void use_rings(InstalledPlan& installed, ChannelRings& rings, int slots_least);

InstalledPlan install(Plan plan, Widening widening, const Placement& placement);

}  // namespace torii
