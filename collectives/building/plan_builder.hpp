// SPDX-License-Identifier: Apache-2.0
// Shared by all algorithms: the plan builder, and the reasons for which any of them may refuse a request.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/building/algorithm.hpp"

namespace torii {

/// Collects the lanes and streams of one rank's plan.
class PlanBuilder {
 public:
  PlanBuilder(const PlanRequest& request, int rank, Dealing dealing, int blocks);

  int rank() const { return plan_.rank; }

  /// Streams that are added from now on name balanced_ties() (runtime/topology/routing.hpp): for exchanges in which all
  /// ranks send equally far at one time.
  void balance_ties() { balances_ties_ = true; }

  /// Adds the receiving (sending) end of a stream. The end returned is at position 0.
  StreamEnd in(const Stream& stream);
  StreamEnd out(const Stream& stream);

  /// Message `position` of a stream, which may be there already: so do values of several subtrees of leaves travel
  /// (LeafTurn).
  StreamEnd in_at(const Stream& stream, int position) { return at_position(plan_.in, stream, position, true); }
  StreamEnd out_at(const Stream& stream, int position) { return at_position(plan_.out, stream, position, false); }

  /// Both ends of a stream by which a value goes on within this rank.
  struct Onward {
    StreamEnd target;
    StreamEnd source;
    bool keep = false;  ///< the flow that feeds it must keep its value
  };
  /// A local stream: the value is in the result, and only the right to read it moves. If partial results are wide, or
  /// the rank has no result, the value goes through slots instead.
  Onward onward(int tag, int messages_per_segment);

  /// Adds an empty lane; the reference holds until the next one is added.
  Lane& lane(int window);
  Lane& lane() { return lane(request_.tuning.window); }

  /// The plan so far, without lanes that do nothing; its maxima are not set.
  Plan take();

 private:
  StreamEnd at_position(const std::vector<Stream>& streams, const Stream& stream, int position, bool comes_in);

  const PlanRequest& request_;
  Plan plan_;
  bool balances_ties_ = false;
};

/// Adds the flows of a lane step by step. Steps that go on evenly (each stream's next message, blocks a constant
/// distance apart) become one flow. So plans stay short in whatever order algorithms add steps.
class StepWriter {
 public:
  /// `blocks` of the plan. The lane must outlive the writer.
  StepWriter(Lane& lane, int blocks) : lane_(lane), blocks_(blocks) {}
  /// One step over `block`; the walk of `step` is set here.
  void add(int block, Flow step);

 private:
  Lane& lane_;
  int blocks_;
};

/// Values of leaves that one rank gives to another one: they take turns on a few streams, however many subtrees its
/// leaves have.
struct LeafTurn {
  static constexpr int kStreams = kLeafStreams;
  int stream = 0;    ///< among those of the pair
  int position = 0;  ///< among the messages of that stream in a segment
  int messages = 1;  ///< of that stream
  /// Value number `number` of `count`.
  static LeafTurn of(int number, int count) {
    return {number % kStreams, number / kStreams, (count - number % kStreams + kStreams - 1) / kStreams};
  }
  /// A plan needs so many slots: all values of a segment may be awaited together.
  static int slots_least(int count) { return (count + kStreams - 1) / kStreams; }
};

/// The same end of a stream some messages further on.
inline StreamEnd at(StreamEnd end, int position) {
  return {end.stream, static_cast<std::uint16_t>(end.position + position)};
}

/// The walk that visits `count` blocks upwards from `first`.
inline Walk blocks_from(int first, int count, int modulus) { return {first, 1, count, modulus}; }

/// Sets the maxima of `plan` to those of the drafts of `busiest`. Among these ranks one has the most in-streams of all
/// ranks and one the most out-streams.
void set_maxima(Plan& plan, const PlanRequest& request, Plan (*draft)(const PlanRequest&, int),
                std::initializer_list<int> busiest);

/// A reason that holds for every algorithm (root or tuning out of range, leaves in intervals that need plans of their
/// own), or an empty string.
std::string why_not_any(const PlanRequest& request);

/// The same, and first "trinaryx3 does barrier, broadcast; not all_gather" if the collective is not one of `able`.
std::string why_not_any(std::string_view algorithm, std::initializer_list<Collective> able, const PlanRequest& request);

/// The same for an algorithm that serves leaves in any intervals, with the collectives that serve them.
std::string why_not_leaves(std::string_view algorithm, std::initializer_list<Collective> able,
                           const PlanRequest& request);

/// The order of every element of a request with leaves: E over all of them.
ExpressionId leaves_order(const PlanRequest& request, ExpressionPool& pool);

/// Vectors up to here travel in one shot by default_tuning().
std::size_t default_one_shot_bytes(const PlanRequest& request);
/// The tuning of a call for which nothing else is known: whole vectors or blocks in one message where they are short.
Tuning default_tuning(const PlanRequest& request, std::size_t bytes);

/// The segment of the tuning, shortened so that the slots for streams to all peers take no more than 8 MiB.
std::size_t segment_for_all_peers(const PlanRequest& request);

/// Empty unless the request is canonical and `order` gives another expression than the canonical one; then the reason.
/// `order` must be the same for all blocks.
std::string why_not_canonical(const PlanRequest& request, decltype(Algorithm::order) order);

/// The operands of ranks 0 .. ranks-1.
std::vector<ExpressionId> all_leaves(ExpressionPool& pool, int ranks);

}  // namespace torii
