// SPDX-License-Identifier: Apache-2.0
// Vectors over plain TCP: the caller's vector is sent as it lies, and received where it belongs or, to be folded,
// beside.
#include <algorithm>
#include <limits>

#include "perf/limits/loops.hpp"

namespace torii::perf {
namespace {

/// So many bytes are folded at once, so that they are still in the caches.
constexpr size_t kFoldBytes = size_t{32} << 10;

class SocketsLoop : public Loop {
 public:
  SocketsLoop(Area& area, Sockets& sockets, const CallData& data, const Movement& movement, const char* name)
      : Loop(area, data, movement, name), sockets_(sockets), transfers_(static_cast<size_t>(movement.ranks)) {
    if (movement.folds) arrived_.resize(transfers_.size(), std::vector<std::byte>(movement.lane_bytes));
  }

  /// Every source sends to every reader what it takes.
  void make_call() override {
    copy_own();
    const bool gives = movement_.is_source(me()), takes = movement_.is_reader(me());
    for (int rank = 0; rank < ranks(); ++rank) {
      Transfer& one = transfers_[static_cast<size_t>(rank)];
      one = {};
      if (rank == me()) continue;
      if (gives && movement_.is_reader(rank)) send(one, lane(rank), movement_.lane_bytes);
      if (takes && movement_.is_source(rank)) receive(one, place(rank), movement_.lane_bytes);
    }
    move(takes && movement_.folds ? data_.result() : nullptr, {0, movement_.lane_bytes});
  }

 protected:
  /// A barrier has no bytes, but one has to travel.
  void send(Transfer& one, const std::byte* data, size_t bytes) {
    one.out = bytes == 0 ? &nothing_ : data;
    one.out_bytes = std::max<size_t>(bytes, 1);
  }
  void receive(Transfer& one, std::byte* data, size_t bytes) {
    one.in = bytes == 0 ? &nothing_ : data;
    one.in_bytes = std::max<size_t>(bytes, 1);
  }
  const std::byte* lane(int reader) const { return data_.input() + movement_.lane_of(reader) * movement_.lane_bytes; }
  std::byte* place(int source) {
    return movement_.folds ? arrived_[static_cast<size_t>(source)].data() : data_.result() + movement_.place_of(source);
  }

  /// Moves all. Folds to `target`, if there is one, this rank's `part` of its lane as the others' arrive.
  void move(std::byte* target, Part part) {
    size_t folded = 0;
    while (sockets_.advance(transfers_))
      if (target != nullptr) fold_arrived(target, part, folded, kFoldBytes);
    if (target != nullptr) fold_arrived(target, part, folded, 1);
  }

  Sockets& sockets_;
  std::vector<Transfer> transfers_;
  std::vector<std::vector<std::byte>> arrived_;  ///< by source, of folds

 private:
  void fold_arrived(std::byte* target, Part part, size_t& folded, size_t at_least) {
    size_t arrived = part.bytes;
    for (size_t i = 0; i < transfers_.size(); ++i)
      if (static_cast<int>(i) != me())
        arrived = std::min(arrived, transfers_[i].received / sizeof(float) * sizeof(float));
    if (arrived < folded + at_least) return;
    for (int rank = 0; rank < ranks(); ++rank)
      sources_[static_cast<size_t>(rank)] =
          (rank == me() ? lane(me()) + part.first : arrived_[static_cast<size_t>(rank)].data()) + folded;
    fold(sources_, target + folded, arrived - folded);
    folded = arrived;
  }

  std::byte nothing_{};
};

/// For more than two ranks: a part of the vector goes to each rank, which folds it or not, and passes it on to all. So
/// no rank sends more than about twice the vector.
class PartSocketsLoop : public SocketsLoop {
 public:
  PartSocketsLoop(Area& area, Sockets& sockets, const CallData& data, const Movement& movement, const char* name)
      : SocketsLoop(area, sockets, data, movement, name) {
    if (!movement.is_reader(me())) beside_.resize(part(me()).bytes);
  }

  void make_call() override {
    scatter();
    gather();
  }

 private:
  Part part(int rank) const { return part_of(rank, movement_.lane_bytes); }
  /// In the result, which only readers have.
  std::byte* own_part() { return beside_.empty() ? data_.result() + part(me()).first : beside_.data(); }

  void scatter() {
    const bool gives = movement_.is_source(me());
    for (int rank = 0; rank < ranks(); ++rank) {
      Transfer& one = transfers_[static_cast<size_t>(rank)];
      one = {};
      if (rank == me()) continue;
      if (gives) send(one, data_.input() + part(rank).first, part(rank).bytes);
      if (movement_.is_source(rank))
        receive(one, movement_.folds ? place(rank) : data_.result() + part(me()).first, part(me()).bytes);
    }
    move(movement_.folds ? own_part() : nullptr, part(me()));
  }

  void gather() {
    for (int rank = 0; rank < ranks(); ++rank) {
      Transfer& one = transfers_[static_cast<size_t>(rank)];
      one = {};
      if (rank == me()) continue;
      if (lacks_parts(rank)) send(one, own_part(), part(me()).bytes);
      if (lacks_parts(me())) receive(one, data_.result() + part(rank).first, part(rank).bytes);
    }
    move(nullptr, {});
  }

  /// True for a reader that has only its own part so far.
  bool lacks_parts(int rank) const {
    return movement_.is_reader(rank) && (movement_.folds || !movement_.is_source(rank));
  }

  std::vector<std::byte> beside_;
};

}  // namespace

Loops network_loops(Area& area, Sockets& sockets, const CallData& data, const Movement& movement) {
  Loops loops;
  loops.push_back(std::make_unique<SocketsLoop>(area, sockets, data, movement, "sockets"));
  const bool has_parts = movement.lanes == 1 && (movement.folds || movement.only_source) && movement.ranks > 2;
  // A part is a whole number of lines; shorter vectors would leave ranks without.
  constexpr size_t kLineBytes = 64;
  if (has_parts && movement.lane_bytes >= kLineBytes * static_cast<size_t>(movement.ranks))
    loops.push_back(std::make_unique<PartSocketsLoop>(area, sockets, data, movement, "sockets, parts"));
  return loops;
}

}  // namespace torii::perf
