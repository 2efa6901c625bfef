// SPDX-License-Identifier: Apache-2.0
// The plan: what one rank does in one operation, as data. Executed, simulated, verified and drawn; never interpreted
// twice.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/determinism.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/leaves.hpp"
#include "runtime/plan/operation.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// Everything a plan depends on. Two ranks that hold equal requests make plans that fit each other.
struct PlanRequest {
  Collective collective = Collective::allreduce;
  Topology topology = Topology::node(1);
  int root = 0;  ///< of a collective that has_root(); 0 for the others
  Determinism determinism = Determinism::run;
  bool wide_wire = false;  ///< partial results of small floats travel as float
  Tuning tuning;
  /// Each rank has an operand for each subtree of these leaves that it has folded; there may be none, or several. The
  /// result is E over the leaves. Must outlive the request. nullptr: each rank has one operand.
  const LeafIntervals* leaves = nullptr;
  bool operator==(const PlanRequest&) const = default;
};

/// The blocks a flow visits within one segment: block(w) = (first + w * step) mod modulus, for w = 0 .. count-1.
struct Walk {
  int first = 0;
  int step = 1;
  int count = 1;
  int modulus = 1;
  int block(int position) const noexcept {
    const int raw = (first + position * step) % modulus;
    return raw < 0 ? raw + modulus : raw;
  }
  auto operator<=>(const Walk&) const = default;
};

/// How a stream's payload travels. The delivery decides who stores where; it never changes a bit of the result.
///   through_slots   by value, through the receiver's slots
///   read_in_place   the receiver reads the sender's own operand in place if it can; otherwise as through_slots
///   write_in_place  the sender stores into the receiver's result in place if it can; otherwise as through_slots
///   local           both flows belong to one rank: no payload, the data is in that rank's result
enum class Delivery : std::uint8_t { through_slots, read_in_place, write_in_place, local };

/// One end of a stream. Both ends carry equal values except `peer`, which is the rank at the other end.
/// Streams are matched by (sender, receiver, tag). Message n of a segment is the n-th in the order of `position`.
struct Stream {
  int peer = 0;
  int tag = 0;                   ///< tells apart the streams of one ordered pair of ranks
  int messages_per_segment = 1;  ///< the sum of the counts of the flows that feed it
  /// The number of consecutive messages that share one slot; the last one carries the signal. More than
  /// 1 only for through_slots, and only if all blocks are equally long.
  int bundle = 1;
  Delivery delivery = Delivery::through_slots;
  int operand = 0;       ///< read_in_place: which of the sender's operands it is (StreamEnd::position of its source)
  int operand_step = 0;  ///< message `position` of a segment is of operand + position x operand_step
  bool wide = false;     ///< small floats travel as float (partial results of a wide plan)
  /// read_in_place: the sender's call waits at its end until the operand has been read; false: the plan's own messages
  /// make it wait, as the verifier proves.
  bool is_awaited = true;
  /// The directions of its messages at ties, if the topology lets senders choose them (Topology::selects_ties()); else
  /// all 0.
  Ties ties = {};
  bool operator==(const Stream&) const = default;
  /// How many times per segment a slot is filled.
  int bundles_per_segment() const noexcept { return messages_per_segment / bundle; }
  int operand_of(int position) const noexcept { return operand + position * operand_step; }
  bool ends_bundle(int position) const noexcept { return bundle == 1 || (position + 1) % bundle == 0; }
};

/// The stream index of the rank's own operand (its input vector). Where a rank has several (PlanRequest::leaves),
/// StreamEnd::position is the operand's number.
inline constexpr std::uint16_t kOwn = 0xffff;

/// One end of a flow at a stream. The stream is an index into Plan::in for a source, into Plan::out for a target, or
/// kOwn. The position is the place of this flow's first message among the messages of one segment. Step w of the flow
/// uses message position + w. An own operand has no messages: all steps of the flow read the operand of that number.
struct StreamEnd {
  std::uint16_t stream = kOwn;
  std::uint16_t position = 0;
  auto operator<=>(const StreamEnd&) const = default;
};

/// left: ((s0 op s1) op s2) ...
/// canonical: E(lo,hi) = E(lo,m) op E(m,hi), m = lo + largest power of two below hi - lo.
enum class Fold : std::uint8_t { left, canonical };

/// One rank's part in one pipelined movement. Step (segment, w) waits for its sources' messages and for its targets'
/// slots. It folds the sources in the order listed, and stores the value in the result (keep) and in every target.
/// A flow without sources sends messages without payload. A flow with one source copies. In an alltoall a flow that
/// only forwards a block, from a stream to a stream, names the rank for which the block is meant.
struct Flow {
  Walk walk = {};
  std::vector<StreamEnd> sources = {};
  bool keep = false;
  std::vector<StreamEnd> targets = {};
  Fold fold = Fold::left;
  std::string_view label = {};  ///< for pictures and messages, e.g. "up tree 0"; points to static text
  auto operator<=>(const Flow&) const = default;
};

/// The steps of a segment run in the order of the flows and, inside a flow, of its walk. Segment s + window does not
/// start before segment s is done in this lane; segments inside the window run independently, lowest first.
struct Lane {
  std::vector<Flow> flows = {};
  int window = 1;
  auto operator<=>(const Lane&) const = default;
};

/// The order of the transfers of a pairwise exchange: transfer e of rank u sends to receiver(u, e), and takes from
/// sender(u, e). Every rank meets every other one once as receiver and once as sender, and receiver(u, e) = v if and
/// only if sender(v, e) = u. Ranks that start their transfers in this order then never deadlock, however few they have
/// in flight (docs/execution.md, "Pairwise exchanges"). One object serves the plans of all ranks; plans refer to it.
class TransferOrder {
 public:
  TransferOrder() = default;
  TransferOrder(const TransferOrder&) = delete;
  TransferOrder& operator=(const TransferOrder&) = delete;
  virtual ~TransferOrder() = default;
  virtual std::string_view name() const noexcept = 0;
  /// The number of transfers: all ranks but this one.
  virtual int transfers() const noexcept = 0;
  virtual int receiver(int rank, int transfer) const noexcept = 0;
  virtual int sender(int rank, int transfer) const noexcept = 0;
  /// The direction of the message that `rank` sends, as Stream::ties.
  virtual Ties ties(int /*rank*/, int /*transfer*/) const noexcept { return {}; }
};

/// Personalised messages, a stream from each sender to each receiver. A rank starts its transfers in the given order. A
/// transfer uses the receiver's slots, or none if one end can address the other's buffer.
struct PairwiseExchange {
  std::shared_ptr<const TransferOrder> order;  ///< nullptr: the plan has no pairwise exchange
  int in_flight = 4;                           ///< most transfers that have begun and have not arrived
  int from = -1;                               ///< scatter: the only rank that sends; -1: all do
  int to = -1;                                 ///< gather: the only rank that takes; -1: all do
  bool prefers_reads = false;                  ///< if both are possible: receivers read, senders do not store

  bool exists() const noexcept { return order != nullptr; }
  bool sends(int rank) const noexcept { return from < 0 || rank == from; }
  bool takes(int rank) const noexcept { return to < 0 || rank == to; }
  /// The number of the stream from `peer` among the in-streams of `rank`, and of the stream to `peer` among its
  /// out-streams. Streams are in the order of ranks, without the rank itself.
  int in_stream(int rank, int peer) const noexcept { return from >= 0 ? 0 : peer - (peer > rank ? 1 : 0); }
  int out_stream(int rank, int peer) const noexcept { return to >= 0 ? 0 : peer - (peer > rank ? 1 : 0); }
};

/// The plan of one rank. Numbers of blocks and streams only, no addresses: it serves every length and every call.
struct Plan {
  int rank = 0;
  int ranks = 1;
  Dealing dealing = Dealing::block;
  int blocks = 1;           ///< all_gather, reduce_scatter: so many equal parts of each rank's block, rank by rank
  int slots = 2;            ///< slots of every stream of the plan
  int in_streams_max = 0;   ///< the most in-streams any rank has; equal on all ranks
  int out_streams_max = 0;  ///< the most out-streams any rank has; equal on all ranks
  int bundle_max = 1;       ///< the largest bundle of any stream of any rank: a slot holds so many segments
  std::vector<Lane> lanes;
  std::vector<Stream> in;
  std::vector<Stream> out;
  PairwiseExchange exchange;  ///< its streams are not in `in` and `out`, but the maxima count them; a plan has lanes
                              ///< or a pairwise exchange
};

}  // namespace torii
