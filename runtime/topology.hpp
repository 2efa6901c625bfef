// SPDX-License-Identifier: Apache-2.0
// What the ranks stand on: a torus or mesh of up to three dimensions, or one shared-memory node. Pure arithmetic.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace torii {

using Coordinates = std::array<int, 3>;

/// rank = x + X (y + Y z). A dimension either wraps (torus) or ends (mesh); an extent of 1 has no links. In a torus a
/// dimension of extent 2 has two cables between the two layers, in a mesh one.
class Topology {
 public:
  enum class Kind { node, torus };  // a mesh is a torus none of whose dimensions wraps

  /// One shared-memory node of `ranks` ranks (>= 1). Throws invalid_argument.
  static Topology node(int ranks);
  /// A torus; `wraps[d]` false makes dimension d a mesh. Extents >= 1, their product at most 2^20. Throws
  /// invalid_argument.
  static Topology torus(Coordinates extents, std::array<bool, 3> wraps = {true, true, true}, int dimensions = 3);
  /// `torus:4x4x4`, `torus:4x4x2m`, `mesh:8x8`, `node`. `ranks` is the size the text must fit: a different product is
  /// an error that names both. Throws Error{invalid_argument} with the offending token, or {unsupported} for `tree:`.
  static Topology parse(std::string_view text, int ranks);

  Kind kind() const noexcept { return kind_; }
  int ranks() const noexcept { return ranks_; }
  int dimensions() const noexcept { return dimensions_; }
  const Coordinates& extents() const noexcept { return extents_; }
  bool wraps(int dimension) const noexcept { return wraps_[static_cast<std::size_t>(dimension)]; }
  Coordinates coordinates(int rank) const noexcept;
  int rank(const Coordinates& at) const noexcept;
  /// The neighbour of `rank` one step along `dimension` in `direction` (+1 or -1), or -1 where a mesh ends or the
  /// extent is 1.
  int neighbour(int rank, int dimension, int direction) const noexcept;
  /// The text that parse() reads back.
  std::string text() const;

  bool operator==(const Topology&) const = default;

 private:
  Kind kind_ = Kind::node;
  int ranks_ = 1;
  int dimensions_ = 1;
  Coordinates extents_ = {1, 1, 1};
  std::array<bool, 3> wraps_ = {false, false, false};
};

}  // namespace torii
