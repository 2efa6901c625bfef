// SPDX-License-Identifier: Apache-2.0
// The folded graph of a plan set: which step waits for which, with the number of segments it looks back. The proofs of
// deadlock freedom and of buffers are questions to this graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/proof/verify_steps.hpp"

namespace torii::verification {

/// The graph is a marked graph with one node per step. It has an edge u -> v of weight k if v of segment s waits for u
/// of segment s - k. It is live if and only if no cycle has weight 0 (Commoner, Holt, Even, Pnueli 1971), whatever the
/// number of segments. Edges: next step of a lane (0), last to first step of a lane (its window), message (0), count.
/// Senders wait for counts: the sender of message p + slots for all messages of its stream up to p. So edges lead from
/// the consumer of p to the producers of p + slots, which may be some segments later, and of all later messages. Of
/// those in later segments the graph has one a message, since no deadlock depends on weights above 0. Edges that
/// another one makes superfluous are left out: see find_followers().
class Precedence {
 public:
  Precedence(const StepTable& table, int slots);

  /// Empty when no cycle has weight 0; otherwise one such cycle in words.
  const std::string& zero_cycle() const { return zero_cycle_; }
  /// All steps, each after every step that it waits for within its own segment. Only without a zero cycle.
  const std::vector<StepId>& order() const { return order_; }
  /// Whether `after` of segment s always starts after `before` of segment s - weight is done, in place or by value, and
  /// with any number of slots: counts prove nothing here, since rings may have more entries than a plan has slots.
  /// Messages of read_in_place streams do not exist in place, and prove nothing either. Segments of a window run
  /// independently, hence the weight must match exactly. True for a step and itself at weight 0.
  bool precedes(StepId before, StepId after, int weight);

 private:
  static constexpr int kEverywhere = -1;

  /// The bundles whose producers wait for the consumer of a bundle, counted from the first of its segment.
  struct Waiting {
    int first;
    int last;
  };
  Waiting waiting_for(const StepPort& source) const;
  void find_followers();

  template <typename Visit>
  void for_each_next(StepId step, bool sure_only, Visit&& visit) const;
  template <typename Visit>
  void for_each_previous(StepId step, Visit&& visit) const;
  void sort_steps();
  std::string describe_zero_cycle(const std::vector<std::int32_t>& waiting) const;
  void reserve_marks(int layers);
  /// One search, among the steps of the two ranks alone when `local`.
  bool search(StepId before, StepId after, int weight, bool local);
  bool expand_forward(StepId after, int weight);
  bool expand_backward(StepId before);
  bool is_inside(StepId step) const;

  const StepTable& table_;
  int slots_;
  std::vector<std::int32_t> followers_;  ///< of the last message of each bundle: see find_followers()
  std::string zero_cycle_;
  std::vector<StepId> order_;
  std::vector<std::int32_t> level_;  ///< longest path of weight-0 edges that ends at the step
  // A search walks from both ends over the graph unrolled into layers of equal weight; marks hold the search's number.
  std::uint32_t search_ = 0;
  int local_ranks_[2] = {kEverywhere, kEverywhere};
  std::vector<std::uint32_t> marks_forward_;
  std::vector<std::uint32_t> marks_backward_;
  std::vector<std::int64_t> queue_forward_;
  std::vector<std::int64_t> queue_backward_;
  std::size_t head_forward_ = 0;
  std::size_t head_backward_ = 0;
};

}  // namespace torii::verification
