// SPDX-License-Identifier: Apache-2.0
// A partial schedule: which ranks have the message, how the links are used, and which continuations are equivalent.
#pragma once

#include <span>
#include <vector>

#include "collectives/schedules/schedule_model.hpp"

namespace torii::scheduling {

struct Move {
  int sender = 0;
  int receiver = 0;
  Ticks start = 0;
};

/// The use of a resource by one transfer.
struct Reservation {
  Ticks begin = 0;
  Ticks end = 0;
  std::int64_t rate = 0;
};

class State {
 public:
  State(const Model& model, int root);

  const Model& model() const { return *model_; }
  bool has(int rank) const { return have_[at(rank)] != kNever; }
  /// When the rank has, or will have, the whole message; kNever if no transfer to it is placed.
  Ticks have(int rank) const { return have_[at(rank)]; }
  std::span<const int> holders() const { return holders_; }
  bool complete() const { return static_cast<int>(holders_.size()) == model_->ranks(); }
  /// The start of the transfer placed last. Transfers are placed in the order of their starts.
  Ticks last() const { return last_; }
  /// When all placed transfers are done.
  Ticks completion() const { return completion_; }
  std::span<const Reservation> reservations(int resource) const { return reservations_[at(resource)]; }

  /// The earliest start at which the transfer fits.
  Ticks earliest(int sender, int receiver) const;
  void place(const Move& move);
  /// Undoes place() of the latest move; `last` and `completion` are the values from before it.
  void take_back(const Move& move, Ticks last, Ticks completion);

 private:
  const Model* model_;
  std::vector<Ticks> have_;
  std::vector<int> holders_;
  std::vector<std::vector<Reservation>> reservations_;
  Ticks last_ = 0;
  Ticks completion_ = 0;
};

/// Labels of a state that are invariant under symmetries of the tree. They are bottom-up labels of rooted trees (Aho,
/// Hopcroft, Ullman 1974), for every root at once, hashed to 64 bits. They include links, messages under way and
/// reservations. Times before last() count as last(), because no later transfer starts before that.
class Labels {
 public:
  explicit Labels(const Model& model);
  void update(const State& state);
  /// Equal for equivalent ranks.
  std::uint64_t of(int rank) const { return rooted_[at(model_->tree().node_of(rank))]; }
  /// Equal for equivalent transfers.
  std::uint64_t of(int sender, int receiver) const;
  /// Equal for equivalent states.
  std::uint64_t whole() const { return whole_; }

 private:
  std::uint64_t edge(int link, int direction) const;
  void label_links(const State& state);

  const Model* model_;
  std::vector<int> order_;              ///< nodes, each after its parent
  std::vector<TreeHop> to_parent_;      ///< by node
  std::vector<std::uint64_t> fixed_;    ///< by directed link
  std::vector<std::uint64_t> busy_;     ///< by resource
  std::vector<std::uint64_t> own_;      ///< by node
  std::vector<std::uint64_t> sum_;      ///< by node: its own label plus `hanging_` of the directed links that enter it
  std::vector<std::uint64_t> hanging_;  ///< by directed link: label of the subtree at the end that the link leaves
  std::vector<std::uint64_t> rooted_;   ///< by node: label of the tree rooted there
  std::uint64_t whole_ = 0;
};

}  // namespace torii::scheduling
