// SPDX-License-Identifier: Apache-2.0
// A partial schedule: the ranks that have the message, the use of the links, and which of its continuations are alike.
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

/// What a transfer occupies of a resource.
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
  /// When the rank has, or will have, everything; kNever if nothing is under way to it.
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
  /// Takes back the move placed last.
  void take_back(const Move& move, Ticks last, Ticks completion);

 private:
  const Model* model_;
  std::vector<Ticks> have_;
  std::vector<int> holders_;
  std::vector<std::vector<Reservation>> reservations_;
  Ticks last_ = 0;
  Ticks completion_ = 0;
};

/// Labels of a state that do not change when like parts of the tree change places: bottom-up labels of rooted trees
/// (Aho, Hopcroft, Ullman 1974) for every root at once, hashed to 64 bits. Times before last() count as last(), since
/// nothing starts earlier any more. Links, messages under way and what is reserved are part of the labels.
class Labels {
 public:
  explicit Labels(const Model& model);
  void update(const State& state);
  /// Equal for ranks that look alike.
  std::uint64_t of(int rank) const { return rooted_[at(model_->tree().node_of(rank))]; }
  /// Equal for transfers that look alike.
  std::uint64_t of(int sender, int receiver) const;
  /// Equal for states that look alike.
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
  std::vector<std::uint64_t> sum_;      ///< by node: its own label and those of all that hangs on it, each way
  std::vector<std::uint64_t> hanging_;  ///< by directed link: what hangs on it at the end it leaves
  std::vector<std::uint64_t> rooted_;   ///< by node
  std::uint64_t whole_ = 0;
};

}  // namespace torii::scheduling
