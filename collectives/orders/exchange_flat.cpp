// SPDX-License-Identifier: Apache-2.0
// Exchange lists of one and two dimensions: the paper's orders, and the order for tori that pairs (i,j) with (j,i).
//
// On a mesh an offset loads both directions of a dimension equally (a message that would leave the mesh goes back). So
// two messages in flight, (i,j) and (j,i), load all links equally. On a torus an offset loads one direction only, so
// four messages are needed.
//
//        (j,i)           + x carries i + j,  - x carries i + j
//     .    .   (i,j)     + y carries i + j,  - y carries i + j
//     .    o    .
//  (-i,-j) .    .        H. Takaue, S. Yazaki, Y. Ajima, T. Shimizu, H. Ishihata, Optimal All-to-All Communication
//       (-j,-i)          Algorithm on 2-dimensional Mesh Network and Torus Network (in Japanese), 2010, sections 3
//       and 4.
#include <utility>

#include "collectives/orders/exchange_parts.hpp"

namespace torii {
namespace {

/// Collects offsets in the paper's notation: send(i, j), mostly several at once.
class Writer {
 public:
  struct Pair {
    int x;
    int y;
  };
  template <typename... Pairs>
  void send(Pairs... pairs) {
    (offsets_.push_back({{pairs.x, pairs.y, 0}}), ...);
  }
  /// The tie (x, 0): even columns send along +, odd columns along -.
  void send_by_parity(int x) { offsets_.push_back({{x, 0, 0}, 0, true}); }
  ExchangeOffsets take() { return std::move(offsets_); }

 private:
  ExchangeOffsets offsets_;
};

using At = Writer::Pair;

/// Steps 1 and 2: the square of (2h + 1) x (2h + 1) around the sender.
void odd_square(Writer& list, int h) {
  for (int i = 1; i <= h; ++i) list.send(At{i, 0}, At{0, i}, At{-i, 0}, At{0, -i});
  for (int i = 1; i <= h; ++i) {
    for (int j = 1; j <= h; ++j) list.send(At{i, j}, At{-j, -i}, At{i, -j}, At{-j, i});
  }
}

/// Steps 3_Odd and 4_Even: columns from first to last, with all rows from -h to h, and row m if there is one (m > 0).
void columns(Writer& list, int first, int last, int h, int m) {
  for (int i = first; i <= last; ++i) {
    for (int j = 1; j <= h; ++j) list.send(At{i, j}, At{-i, -j}, At{i, -j}, At{-i, j});
    list.send(At{i, 0}, At{-i, 0});
    if (m > 0) list.send(At{i, m}, At{-i, m});
  }
}

/// Column `x` without its ends.
void column(Writer& list, int x, int h) {
  for (int i = 1; i <= h; ++i) list.send(At{x, i}, At{x, -i});
}

/// The rest of a mesh of an even y after the odd square: steps 3, or 3_Even, 4_Even and 5.
void mesh_even_rest(Writer& list, int x, int y) {
  const int m = y / 2;
  const int h = m - 1;
  for (int i = 1; i <= h; ++i) list.send(At{m, i}, At{-i, m}, At{m, -i}, At{i, m});
  list.send(At{m, 0}, At{0, m}, At{m, m});
  if (x == y) return;
  list.send(At{-m, m});
  columns(list, m + 1, (x - 1) / 2, h, m);  // printed as floor(x/2 - 1), which loses two columns of an odd x
  if (x % 2 == 0) {
    column(list, x / 2, h);
    list.send(At{x / 2, 0}, At{x / 2, m});
  }
  column(list, -m, h);
  list.send(At{-m, 0});
}

/// The part of a torus's list in which (i,j) and (j,i) are adjacent; h = floor((y-1)/2).
void torus_square(Writer& list, int h) {
  for (int i = 1; i <= h; ++i) list.send(At{i, 0}, At{0, i}, At{-i, 0}, At{0, -i});
  for (int i = 1; i <= h; ++i) {
    for (int j = i + 1; j <= h; ++j) {
      list.send(At{i, j}, At{-j, -i}, At{j, i}, At{-i, -j});
      list.send(At{i, -j}, At{-j, i}, At{j, -i}, At{-i, j});
    }
  }
  for (int i = 1; i <= h; ++i) list.send(At{i, i}, At{-i, -i}, At{i, -i}, At{-i, i});
}

/// The rest of the square of a torus of an even y, up to its corner.
void torus_rim(Writer& list, int h, int m) {
  for (int i = 1; i <= h; ++i) list.send(At{m, -i}, At{-m, i});
  list.send(At{m, m}, At{-m, -m});
}

}  // namespace

ExchangeOffsets mesh_offsets(int x, int y) {
  Writer list;
  const int h = (y - 1) / 2;
  odd_square(list, h);
  if (y % 2 == 0) {
    mesh_even_rest(list, x, y);
    return list.take();
  }
  columns(list, h + 1, (x - 1) / 2, h, 0);
  if (x % 2 == 0) {
    column(list, x / 2, h);
    list.send(At{x / 2, 0});
  }
  return list.take();
}

ExchangeOffsets printed_torus_offsets(int x, int y) {
  if (x != y || x % 2 != 0) return mesh_offsets(x, y);
  Writer list;
  const int m = x / 2;
  odd_square(list, m - 1);
  // Step 3_T, printed from i = 0, which would send the four messages of its last two lines twice.
  for (int i = 1; i < m; ++i) list.send(At{m, i}, At{-i, -m}, At{-m, -i}, At{i, m});
  list.send(At{m, 0}, At{0, m}, At{-m, -m});
  return list.take();
}

ExchangeOffsets torus_offsets(int x, int y) {
  Writer list;
  const bool even = y % 2 == 0;
  const int h = (y - 1) / 2;
  const int m = even ? y / 2 : 0;
  const int half = x / 2;
  torus_square(list, h);
  if (even) {
    for (int i = 1; i <= h; ++i) list.send(At{m, i}, At{-i, -m}, At{-m, -i}, At{i, m});
  }
  if (x == y) {
    if (even) list.send(At{m, 0}, At{0, m}, At{-m, -m});
    return list.take();
  }
  if (even) torus_rim(list, h, m);
  for (int i = (even ? m : h) + 1; i <= (x - 1) / 2; ++i) {
    for (int j = 1; j <= h; ++j) list.send(At{i, j}, At{-i, -j}, At{i, -j}, At{-i, j});
    list.send(At{i, 0}, At{-i, 0});
    if (even) list.send(At{i, m}, At{-i, -m});
  }
  if (x % 2 == 0) {
    for (int j = 1; j <= h; ++j) list.send(At{half, j}, At{-half, -j});
    if (even) list.send(At{half, 0}, At{-half, m});
  }
  // The offset (0, m), which has no partner, comes just before the last pair.
  if (even) list.send(At{0, m}, At{m, 0}, At{-m, 0});
  if (x % 2 == 0 && !even) list.send_by_parity(half);
  return list.take();
}

}  // namespace torii
