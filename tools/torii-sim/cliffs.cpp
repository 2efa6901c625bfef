// SPDX-License-Identifier: Apache-2.0
// Finds each row's neighbours in a scan.
#include "tools/torii-sim/cliffs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

namespace torii::tools {
namespace {

/// Algorithm, topology, engines, ranks and bytes, as requested.
using Key = std::tuple<std::string, std::string, int, int, std::size_t>;

/// Blocks of whole elements may make a vector shorter than requested.
constexpr double kRoundingMost = 0.05;

Key key_of(const AskedRow& asked, int more_ranks, std::size_t times_bytes) {
  const SimRow& row = asked.row;
  return {asked.algorithm, row.topology, row.engines, row.ranks + more_ranks, asked.bytes * times_bytes};
}

std::string text_of(const SimRow& row) {
  return fmt::format("{} bytes on {} ranks by {} {:.3f} us, {:.3f} of the bound", row.bytes, row.ranks, row.algorithm,
                     row.time_us, row.time_us / row.bound_us);
}

/// Whether `other` has about that many times the bytes of `one`. Rows of a barrier have none.
bool has_times_the_bytes(const SimRow& one, const SimRow& other, double times) {
  const auto bytes = static_cast<double>(other.bytes);
  const double wanted = times * static_cast<double>(one.bytes);
  return std::abs(bytes - wanted) <= kRoundingMost * wanted && (bytes > 0 || one.collective == "barrier");
}

void compare_sizes(const SimRow& one, const SimRow& twice, Cliffs& cliffs) {
  if (!has_times_the_bytes(one, twice, 2)) return;
  ++cliffs.compared;
  const double longer = twice.time_us / one.time_us;
  if (longer >= 1 && longer <= kTwiceTheBytesMost) return;
  cliffs.found.push_back(fmt::format("{} {}: twice the bytes take {:.3f} times as long: {}; {}", one.collective,
                                     one.topology, longer, text_of(one), text_of(twice)));
}

void compare_ranks(const SimRow& one, const SimRow& more, Cliffs& cliffs) {
  if (one.bound_us <= 0 || more.bound_us <= 0 || !has_times_the_bytes(one, more, 1)) return;
  ++cliffs.compared;
  const double factor = more.time_us / more.bound_us / (one.time_us / one.bound_us);
  if (factor <= kOneRankMoreMost && factor >= 1 / kOneRankMoreMost) return;
  cliffs.found.push_back(fmt::format("{} {}: with one rank more, time over bound is {:.3f} times as much: {}; {}",
                                     one.collective, one.topology, factor, text_of(one), text_of(more)));
}

}  // namespace

Cliffs compare_rows(const std::vector<AskedRow>& rows) {
  std::map<Key, const SimRow*> by_key;
  for (const AskedRow& asked : rows) by_key[key_of(asked, 0, 1)] = &asked.row;
  Cliffs cliffs;
  for (const AskedRow& asked : rows) {
    const auto twice = by_key.find(key_of(asked, 0, 2));
    if (asked.bytes > 0 && twice != by_key.end()) compare_sizes(asked.row, *twice->second, cliffs);
    const auto more = by_key.find(key_of(asked, 1, 1));
    if (asked.row.topology == "node" && more != by_key.end()) compare_ranks(asked.row, *more->second, cliffs);
  }
  return cliffs;
}

}  // namespace torii::tools
