// SPDX-License-Identifier: Apache-2.0
// Topological order of the folded graph, and searches for paths of an exact weight. Edges are computed from the step
// tables when they are asked for, so that trying another number of slots costs nothing but the search.
#include "collectives/proof/verify_precedence.hpp"

#include <algorithm>

namespace torii::verification {
namespace {

bool has_sure_message(const Stream& stream) { return stream.delivery != Delivery::read_in_place; }

}  // namespace

Precedence::Precedence(const StepTable& table, int slots) : table_(table), slots_(slots) {
  find_followers();
  sort_steps();
}

/// The follower of a bundle is the next one of its segment that the same lane takes later, and is given as how many
/// bundles further on it is. Whoever waits for the follower waits for this bundle too. So its own edges lead only to
/// bundles that do not wait for the follower.
void Precedence::find_followers() {
  followers_.assign(table_.consumer_of.size(), 0);
  for (const JoinedStream& joined : table_.streams) {
    const int bundles = joined.stream.bundles_per_segment();
    const auto taker = [&](int number) {
      return table_.consumer(joined, number * joined.stream.bundle + joined.stream.bundle - 1);
    };
    const auto follows = [&](int next, int number) {
      return taker(next) > taker(number) && table_.steps[taker(next)].lane == table_.steps[taker(number)].lane;
    };
    for (int number = 0; number < bundles; ++number) {
      int next = number + 1;
      while (next < bundles && !follows(next, number)) ++next;
      followers_[joined.first_message + number * joined.stream.bundle + joined.stream.bundle - 1] = next - number;
    }
  }
}

Precedence::Waiting Precedence::waiting_for(const StepPort& source) const {
  const JoinedStream& joined = table_.streams[source.stream];
  const int freed = source.message / joined.stream.bundle + slots_;
  const int follower = followers_[joined.first_message + source.message];
  return {freed, std::max(freed, std::min(freed + follower, joined.stream.bundles_per_segment()) - 1)};
}

template <typename Visit>
void Precedence::for_each_next(StepId step, bool sure_only, Visit&& visit) const {
  const LaneSteps& lane = table_.lane_of(step);
  if (step + 1 < lane.end) {
    visit(step + 1, 0);
  } else {
    visit(lane.first, static_cast<int>(lane.window));
  }
  for (const StepPort& target : table_.targets(step)) {
    const JoinedStream& joined = table_.streams[target.stream];
    if (sure_only && !has_sure_message(joined.stream)) continue;
    // The last message of a bundle brings all of them; what makes the others comes before it in its lane.
    if (!joined.stream.ends_bundle(target.message)) continue;
    for (int message = target.message + 1 - joined.stream.bundle; message <= target.message; ++message) {
      visit(table_.consumer(joined, message), 0);
    }
  }
  if (sure_only) return;
  for (const StepPort& source : table_.sources(step)) {
    if (source.stream == kOwnStream) continue;
    const JoinedStream& joined = table_.streams[source.stream];
    if (!joined.stream.ends_bundle(source.message)) continue;
    const int bundles = joined.stream.bundles_per_segment();
    const Waiting waiting = waiting_for(source);
    for (int next = waiting.first; next <= waiting.last; ++next) {
      visit(table_.producer(joined, next % bundles * joined.stream.bundle), next / bundles);
    }
  }
}

template <typename Visit>
void Precedence::for_each_previous(StepId step, Visit&& visit) const {
  const LaneSteps& lane = table_.lane_of(step);
  if (step > lane.first) {
    visit(step - 1, 0);
  } else {
    visit(lane.end - 1, static_cast<int>(lane.window));
  }
  for (const StepPort& source : table_.sources(step)) {
    if (source.stream == kOwnStream) continue;
    const JoinedStream& joined = table_.streams[source.stream];
    const int bundle = joined.stream.bundle;
    const int last = source.message / bundle * bundle + bundle - 1;
    if (has_sure_message(joined.stream)) visit(table_.producer(joined, last), 0);
  }
}

void Precedence::sort_steps() {
  const std::int32_t count = table_.step_count();
  std::vector<std::int32_t> waiting(count, 0);
  for (StepId step = 0; step < count; ++step) {
    for_each_next(step, false, [&](StepId next, int weight) {
      if (weight == 0) ++waiting[next];
    });
  }
  level_.assign(count, 0);
  order_.reserve(count);
  for (StepId step = 0; step < count; ++step) {
    if (waiting[step] == 0) order_.push_back(step);
  }
  for (std::size_t head = 0; head < order_.size(); ++head) {
    const StepId step = order_[head];
    for_each_next(step, false, [&](StepId next, int weight) {
      if (weight != 0) return;
      level_[next] = std::max(level_[next], level_[step] + 1);
      if (--waiting[next] == 0) order_.push_back(next);
    });
  }
  if (static_cast<std::int32_t>(order_.size()) != count) zero_cycle_ = describe_zero_cycle(waiting);
}

std::string Precedence::describe_zero_cycle(const std::vector<std::int32_t>& waiting) const {
  // Every step still waiting waits for another one that is waiting too, so walking back must come round.
  const std::int32_t count = table_.step_count();
  std::vector<StepId> waits_for(count, kNoStep);
  for (StepId step = 0; step < count; ++step) {
    if (waiting[step] == 0) continue;
    for_each_next(step, false, [&](StepId next, int weight) {
      if (weight == 0) waits_for[next] = step;
    });
  }
  StepId step =
      static_cast<StepId>(std::find_if(waiting.begin(), waiting.end(), [](int n) { return n != 0; }) - waiting.begin());
  for (std::int32_t i = 0; i < count; ++i) step = waits_for[step];
  std::string text = "deadlock: " + table_.text(step);
  constexpr int kStepsShown = 8;
  StepId at = waits_for[step];
  for (int shown = 0; shown < kStepsShown && at != step; ++shown, at = waits_for[at])
    text += ", which waits for " + table_.text(at);
  return text + (at == step ? ", which waits for the first" : ", and so on round to the first");
}

void Precedence::reserve_marks(int layers) {
  const std::size_t size = static_cast<std::size_t>(layers) * table_.steps.size();
  if (marks_forward_.size() < size) {
    marks_forward_.resize(size, 0);
    marks_backward_.resize(size, 0);
  }
  ++search_;
  queue_forward_.clear();
  queue_backward_.clear();
  head_forward_ = head_backward_ = 0;
}

bool Precedence::expand_forward(StepId after, int weight) {
  const std::int64_t count = table_.step_count();
  const std::int64_t state = queue_forward_[head_forward_++];
  const int layer = static_cast<int>(state / count);
  bool met = false;
  for_each_next(static_cast<StepId>(state % count), true, [&](StepId next, int edge_weight) {
    const int next_layer = layer + edge_weight;
    if (met || next_layer > weight || !is_inside(next)) return;
    const std::int64_t next_state = next_layer * count + next;
    if (marks_backward_[next_state] == search_) met = true;
    if (marks_forward_[next_state] == search_) return;
    if (next_layer == weight && level_[next] >= level_[after]) return;  // no way down to `after` from here
    marks_forward_[next_state] = search_;
    queue_forward_.push_back(next_state);
  });
  return met;
}

bool Precedence::expand_backward(StepId before) {
  const std::int64_t count = table_.step_count();
  const std::int64_t state = queue_backward_[head_backward_++];
  const int layer = static_cast<int>(state / count);
  bool met = false;
  for_each_previous(static_cast<StepId>(state % count), [&](StepId previous, int edge_weight) {
    const int previous_layer = layer - edge_weight;
    if (met || previous_layer < 0 || !is_inside(previous)) return;
    const std::int64_t previous_state = previous_layer * count + previous;
    if (marks_forward_[previous_state] == search_) met = true;
    if (marks_backward_[previous_state] == search_) return;
    if (previous_layer == 0 && level_[previous] <= level_[before]) return;
    marks_backward_[previous_state] = search_;
    queue_backward_.push_back(previous_state);
  });
  return met;
}

bool Precedence::precedes(StepId before, StepId after, int weight) {
  if (weight == 0) {
    if (before == after) return true;
    if (level_[before] >= level_[after]) return false;
    if (table_.steps[before].lane == table_.steps[after].lane) return true;  // the lower level comes first in its lane
  }
  // Most paths stay with the two ranks; asking there first spares the wide fan-outs of direct algorithms.
  return search(before, after, weight, true) || search(before, after, weight, false);
}

bool Precedence::is_inside(StepId step) const {
  if (local_ranks_[0] == kEverywhere) return true;
  const int rank = table_.rank_of(step);
  return rank == local_ranks_[0] || rank == local_ranks_[1];
}

bool Precedence::search(StepId before, StepId after, int weight, bool local) {
  local_ranks_[0] = local ? table_.rank_of(before) : kEverywhere;
  local_ranks_[1] = local ? table_.rank_of(after) : kEverywhere;
  reserve_marks(weight + 1);
  queue_forward_.push_back(before);
  marks_forward_[before] = search_;
  const std::int64_t goal = static_cast<std::int64_t>(weight) * table_.step_count() + after;
  queue_backward_.push_back(goal);
  marks_backward_[goal] = search_;
  while (head_forward_ < queue_forward_.size() && head_backward_ < queue_backward_.size()) {
    const bool forward = queue_forward_.size() - head_forward_ <= queue_backward_.size() - head_backward_;
    if (forward ? expand_forward(after, weight) : expand_backward(before)) return true;
  }
  return false;
}

}  // namespace torii::verification
