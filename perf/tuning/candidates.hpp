// SPDX-License-Identifier: Apache-2.0
// What a row of a tune table can say about a call, and which of it is worth measuring.
#pragma once

#include <torii/torii.h>

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

namespace torii::perf {

/// An algorithm with its tuning, in the words of a tune table.
struct Choice {
  std::string algorithm;
  size_t segment_bytes = 0;
  int slots = 0;
  int window = 0;
  bool one_shot = false;
  auto operator<=>(const Choice&) const = default;
};

/// "node 32K/8/4" or "node 2K/4/1 one_shot": algorithm, segment, slots, window.
std::string to_text(const Choice& choice);

/// Every algorithm with every tuning that is worth a try for a vector of `bytes` on `ranks` ranks. Segments come from
/// one short list for all lengths, so that neighbouring lengths can share a row. An algorithm may refuse; that is asked
/// later.
std::vector<Choice> candidates(torii_collective collective, size_t bytes, int ranks,
                               const std::vector<std::string>& algorithms);

/// A tune table of one row, by which a team runs `collective` by this choice, whatever the length.
std::string one_row_table(torii_collective collective, const Choice& choice);

}  // namespace torii::perf
