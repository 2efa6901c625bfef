// SPDX-License-Identifier: Apache-2.0
// Branch and bound over the transfers of a broadcast.
//
// A partial schedule is extended by every transfer whose earliest start is not before that of the last placed transfer.
// Only one of several equivalent transfers (Labels) is tried. The search runs in stages:
// - It solves the network without latencies, and replays the order found there with latencies.
// - It runs a short depth-first search, then beam searches of widths 1, 4, 16 and 64 in two orders of preference.
// - It searches depth first until all partial schedules are examined or the budget is used up.
#include "collectives/schedules/schedule.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <unordered_set>

#include "collectives/schedules/schedule_bound.hpp"
#include "collectives/schedules/schedule_transfers.hpp"
#include "runtime/base/recent.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace scheduling {
namespace {

constexpr std::size_t kSeenMost = std::size_t{1} << 22;
constexpr int kBeams[] = {1, 4, 16, 64};
/// Steps, times the beam's width, of the depth-first search after each beam. They are enough to finish small networks.
constexpr std::int64_t kDivePerWidth = 200;

/// A partial schedule extended by one move.
struct Child {
  Move move;
  Ticks bound = 0;
  Ticks distance = 0;      ///< the time of a transfer to the receiver from the nearest rank that has the message
  int hops = 0;            ///< links from the sender
  std::size_t parent = 0;  ///< in a beam
};

/// Which of two children with equal bounds is tried first: the farthest receiver, or the earliest start.
enum class Prefer { far, early };

/// The order in which children are tried: least bound, farthest receiver, earliest start, nearest sender. With
/// Prefer::early the earliest start counts before the farthest receiver, which keeps slow links busy.
bool is_better(const Child& a, const Child& b, Prefer prefer) {
  if (a.bound != b.bound) return a.bound < b.bound;
  if (prefer == Prefer::early && a.move.start != b.move.start) return a.move.start < b.move.start;
  if (a.distance != b.distance) return a.distance > b.distance;
  if (a.move.start != b.move.start) return a.move.start < b.move.start;
  if (a.hops != b.hops) return a.hops < b.hops;
  return std::pair(a.move.sender, a.move.receiver) < std::pair(b.move.sender, b.move.receiver);
}

class Search {
 public:
  Search(const Model& model, int root, const ScheduleBudget& budget, std::chrono::steady_clock::time_point begun)
      : model_(model), root_(root), budget_(budget), begun_(begun), state_(model, root), labels_(model), bound_(model) {
    least_ = bound_.of(state_, kNever);
  }

  /// Two first schedules to beat. Each always places the transfer that ends first: to any rank, or to a farthest rank.
  void greedy() {
    greedy(false);
    greedy(true);
  }

  /// A first schedule to beat: places the transfers in this order, each as early as possible.
  void replay(const std::vector<Move>& order) {
    State state(model_, root_);
    std::vector<Move> moves;
    for (Move move : order) {
      move.start = state.earliest(move.sender, move.receiver);
      state.place(move);
      moves.push_back(move);
    }
    offer(moves, state.completion());
  }

  void run() {
    dive(std::min(budget_.steps, 2 * static_cast<std::int64_t>(model_.ranks())));
    for (const int width : kBeams) {
      for (const Prefer prefer : {Prefer::early, Prefer::far}) {
        if (is_over()) return;
        prefer_ = prefer;
        beam(static_cast<std::size_t>(width));
      }
      if (is_over()) return;
      prefer_ = Prefer::far;
      seen_.clear();
      is_complete_ = dive(std::min(budget_.steps, nodes_ + kDivePerWidth * width));
      if (is_complete_) return;
    }
    if (is_over()) return;
    seen_.clear();
    prefer_ = Prefer::far;
    is_complete_ = dive(budget_.steps);
  }

  const std::vector<Move>& best() const { return best_; }
  Ticks time() const { return best_time_; }
  Ticks least() const { return least_; }
  std::int64_t nodes() const { return nodes_; }
  bool proven() const { return is_complete_ || least_ >= enough(); }

 private:
  /// A partial schedule whose bound reaches this time cannot improve the best schedule.
  Ticks enough() const {
    return best_time_ == kNever ? kNever : best_time_ - best_time_ / 1'000'000'000 - 8 * model_.ranks();
  }

  /// The time of a transfer from the nearest rank that has the message.
  Ticks distance(const State& state, int receiver) const {
    Ticks nearest = kNever;
    for (const int sender : state.holders()) {
      const Way& way = model_.way(sender, receiver);
      nearest = std::min(nearest, way.latency + way.duration);
    }
    return nearest;
  }

  void greedy(bool farthest_first) {
    State state(model_, root_);
    std::vector<Move> moves;
    while (!state.complete()) {
      Move best;
      Ticks best_end = kNever;
      Ticks best_distance = 0;
      for (int receiver = 0; receiver < model_.ranks(); ++receiver) {
        if (state.has(receiver)) continue;
        const Ticks far = farthest_first ? distance(state, receiver) : 0;
        if (far < best_distance) continue;
        if (far > best_distance) best_end = kNever;
        best_distance = far;
        for (const int sender : state.holders()) {
          const Ticks takes = model_.way(sender, receiver).latency + model_.way(sender, receiver).duration;
          if (state.have(sender) + takes >= best_end) continue;
          const Ticks start = state.earliest(sender, receiver);
          if (start + takes >= best_end) continue;
          best = {sender, receiver, start};
          best_end = start + takes;
        }
      }
      state.place(best);
      moves.push_back(best);
    }
    offer(moves, state.completion());
  }

  bool is_out_of_budget() {
    if (nodes_ >= budget_.steps) return true;
    if (budget_.seconds <= 0) return false;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun_;
    return took.count() >= budget_.seconds;
  }
  bool is_over() { return least_ >= enough() || is_out_of_budget(); }

  void offer(const std::vector<Move>& moves, Ticks completion) {
    if (completion >= best_time_) return;
    best_time_ = completion;
    best_ = moves;
  }

  void place(const Move& move) {
    state_.place(move);
    moves_.push_back(move);
  }
  void take_back(Ticks last, Ticks completion) {
    state_.take_back(moves_.back(), last, completion);
    moves_.pop_back();
  }

  void sort(std::vector<Child>& children) const {
    std::sort(children.begin(), children.end(),
              [this](const Child& a, const Child& b) { return is_better(a, b, prefer_); });
  }

  /// The children of state_ that may lead to a better schedule, one of each equivalence class.
  std::vector<Child> expand() {
    std::vector<Child> children;
    labels_.update(state_);
    std::unordered_set<std::uint64_t> kinds;
    for (int receiver = 0; receiver < model_.ranks(); ++receiver) {
      if (state_.has(receiver) || !kinds.insert(labels_.of(receiver)).second) continue;
      const Ticks far = distance(state_, receiver);
      for (const int sender : state_.holders()) {
        const Way& way = model_.way(sender, receiver);
        if (std::max(state_.have(sender), state_.last()) + way.latency + way.duration >= enough()) continue;
        if (!kinds.insert(labels_.of(sender, receiver)).second) continue;
        const Ticks start = state_.earliest(sender, receiver);
        if (start < state_.last() || start + way.latency + way.duration >= enough()) continue;
        children.push_back({{sender, receiver, start}, 0, far, static_cast<int>(way.hop_count), 0});
      }
    }
    const Ticks last = state_.last();
    const Ticks completion = state_.completion();
    for (Child& child : children) {
      place(child.move);
      ++nodes_;
      if (state_.complete()) offer(moves_, state_.completion());
      child.bound = bound_.of(state_, enough());
      take_back(last, completion);
    }
    std::erase_if(children, [&](const Child& child) { return child.bound >= enough(); });
    sort(children);
    return children;
  }

  /// Whether an equivalent state with a completion no later than this one has been seen.
  bool is_known(std::uint64_t label, Ticks completion) {
    const auto [known, fresh] = seen_.try_emplace(label, completion);
    if (fresh) {
      if (seen_.size() > kSeenMost) seen_.erase(known);
      return false;
    }
    if (known->second <= completion) return true;
    known->second = completion;
    return false;
  }

  /// Searches depth first from state_. Returns false if it stopped because `until` partial schedules were examined.
  bool dive(std::int64_t until) {
    if (is_over() || nodes_ >= until) return least_ >= enough();
    std::vector<Child> children = expand();
    if (!moves_.empty() && is_known(labels_.whole(), state_.completion())) return true;
    const Ticks last = state_.last();
    const Ticks completion = state_.completion();
    for (const Child& child : children) {
      if (child.bound >= enough()) continue;
      place(child.move);
      const bool all = state_.complete() || dive(until);
      take_back(last, completion);
      if (!all) return false;
    }
    return true;
  }

  /// A beam search: keeps the `width` best partial schedules of each number of transfers.
  void beam(std::size_t width) {
    std::vector<std::vector<Move>> beam = {{}};
    while (!beam.empty() && !is_out_of_budget()) {
      std::vector<Child> children;
      std::unordered_set<std::uint64_t> labels;
      for (std::size_t i = 0; i < beam.size(); ++i) {
        const Undo undo(*this, beam[i]);
        if (state_.complete()) return;
        std::vector<Child> more = expand();
        if (!labels.insert(labels_.whole()).second) continue;
        for (Child& child : more) child.parent = i;
        children.insert(children.end(), more.begin(), more.end());
      }
      sort(children);
      std::vector<std::vector<Move>> next;
      for (const Child& child : children) {
        if (next.size() == width) break;
        if (child.bound >= enough()) continue;
        next.push_back(beam[child.parent]);
        next.back().push_back(child.move);
      }
      beam = std::move(next);
    }
  }

  /// Places moves, and its destructor takes them back.
  class Undo {
   public:
    Undo(Search& search, const std::vector<Move>& moves) : search_(search) {
      for (const Move& move : moves) {
        before_.emplace_back(search.state_.last(), search.state_.completion());
        search.place(move);
      }
    }
    ~Undo() {
      for (; !before_.empty(); before_.pop_back()) search_.take_back(before_.back().first, before_.back().second);
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;

   private:
    Search& search_;
    std::vector<std::pair<Ticks, Ticks>> before_;
  };

  const Model& model_;
  int root_;
  ScheduleBudget budget_;
  std::chrono::steady_clock::time_point begun_;
  State state_;
  Labels labels_;
  Bound bound_;
  std::vector<Move> moves_;
  std::vector<Move> best_;
  Ticks best_time_ = kNever;
  Ticks least_ = 0;
  std::int64_t nodes_ = 0;
  Prefer prefer_ = Prefer::far;
  bool is_complete_ = false;
  std::unordered_map<std::uint64_t, Ticks> seen_;
};

bool has_latency(const TreeTopology& tree) {
  return std::any_of(tree.links().begin(), tree.links().end(),
                     [](const TreeLink& link) { return link.latency_ns[0] != 0 || link.latency_ns[1] != 0; });
}

}  // namespace
}  // namespace scheduling

Schedule find_schedule(const TreeTopology& tree, int root, std::size_t bytes, const ScheduleBudget& budget) {
  using namespace scheduling;
  if (root < 0 || root >= tree.ranks()) {
    throw Error(Status::invalid_argument, "the root is " + std::to_string(root) + "; it must be a rank from 0 to " +
                                              std::to_string(tree.ranks() - 1));
  }
  Schedule schedule;
  if (tree.ranks() == 1) {
    schedule.proven = true;
    return schedule;
  }
  const auto begun = std::chrono::steady_clock::now();
  const Model model(tree, bytes, true);
  Search search(model, root, budget, begun);
  if (has_latency(tree)) {
    const Model twin(tree, bytes, false);
    Search first(twin, root, {budget.steps / 4, budget.seconds / 4}, begun);
    first.greedy();
    first.run();
    schedule.nodes = first.nodes();
    if (!first.best().empty()) search.replay(first.best());
  }
  search.greedy();
  search.run();
  schedule.nodes += search.nodes();
  schedule.transfers = transfers_of(model, search.best());
  schedule.time_s = model.seconds(search.time());
  schedule.proven = search.proven();
  schedule.bound_s = schedule.proven ? schedule.time_s : model.seconds(search.least());
  return schedule;
}

std::shared_ptr<const Schedule> kept_schedule(const Topology& topology, int root, std::size_t bytes, bool backwards) {
  static Recent<Schedule, int, std::size_t, bool, Topology> recent(32);
  const auto make = [&] {
    const TreeTopology tree = topology.tree() == nullptr ? TreeTopology::star(topology.ranks()) : *topology.tree();
    return find_schedule(backwards ? tree.reversed() : tree, root, bytes);
  };
  return recent.get(make, root, bytes, backwards, topology);
}

}  // namespace torii
