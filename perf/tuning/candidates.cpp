// SPDX-License-Identifier: Apache-2.0
// The list of candidates.
#include "perf/tuning/candidates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "perf/common/names.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr size_t kKiB = 1024;
constexpr std::array kWholeSegments = {kKiB / 2,  4 * kKiB,  8 * kKiB,   16 * kKiB,
                                       32 * kKiB, 64 * kKiB, 128 * kKiB, 256 * kKiB};
/// Few slots stay in the reader's second-level cache, many have left it before they are written again.
constexpr std::array kWholeSlots = {4, 64};
constexpr size_t kManySlotsSegmentMax = 16 * kKiB;
/// From here on a pipeline of segments may win.
constexpr size_t kPipelineBytesMin = 16 * kKiB;

struct Tuning {
  size_t segment_bytes;
  int slots, window;
};
constexpr std::array kPipelines = {Tuning{16 * kKiB, 4, 4},  Tuning{16 * kKiB, 64, 8}, Tuning{32 * kKiB, 8, 4},
                                   Tuning{32 * kKiB, 32, 8}, Tuning{64 * kKiB, 8, 4},  Tuning{64 * kKiB, 64, 8},
                                   Tuning{128 * kKiB, 4, 2}, Tuning{128 * kKiB, 8, 4}, Tuning{256 * kKiB, 8, 4},
                                   Tuning{1024 * kKiB, 2, 2}};

/// A ring of half a block to two: segments are blocks, rounded up to a power of two, over `parts`. The rings of all
/// peers together then stay in the caches.
struct BlockRing {
  size_t parts;
  int slots;
};
constexpr std::array kBlockRings = {BlockRing{1, 1}, BlockRing{1, 2}, BlockRing{2, 1},
                                    BlockRing{2, 2}, BlockRing{4, 2}, BlockRing{4, 4}};
constexpr size_t kRingSegmentMin = 4 * kKiB, kRingSegmentMax = 1024 * kKiB;
/// With few slots a longer window changes nothing, but that of an exchange counts transfers.
constexpr int kWindow = 4, kExchangeWindow = 8;

/// Segments are powers of two, as in the other lists.
std::vector<Tuning> block_rings(torii_collective collective, size_t block_bytes) {
  std::vector<Tuning> list;
  for (const BlockRing& ring : kBlockRings) {
    const size_t segment_bytes = std::bit_ceil(block_bytes) / ring.parts;
    if (segment_bytes < kRingSegmentMin || segment_bytes > kRingSegmentMax) continue;
    list.push_back({segment_bytes, ring.slots, kWindow});
    if (is_personalised(collective)) list.push_back({segment_bytes, ring.slots, kExchangeWindow});
  }
  return list;
}

}  // namespace

std::string to_text(const Choice& choice) {
  return fmt::format("{} {}/{}/{}{}", choice.algorithm, bytes_text(choice.segment_bytes), choice.slots, choice.window,
                     choice.one_shot ? " one_shot" : "");
}

std::vector<Choice> candidates(torii_collective collective, size_t bytes, int ranks,
                               const std::vector<std::string>& algorithms) {
  // Segments divide blocks where every rank has one. Elsewhere some algorithms divide the vector among the ranks.
  const size_t block_bytes = bytes / static_cast<size_t>(ranks);
  const size_t message_bytes = has_blocks(collective) ? block_bytes : bytes;
  std::vector<Choice> list;
  const auto add = [&](const Choice& choice) {
    if (std::find(list.begin(), list.end(), choice) == list.end()) list.push_back(choice);
  };
  for (const std::string& algorithm : algorithms) {
    if (collective == TORII_BARRIER) {
      add({algorithm, 64, 4, 1, false});
      continue;
    }
    // One message: the least segment that takes the vector, and the next one, which longer vectors may share.
    int wholes = 0;
    for (const size_t segment : kWholeSegments) {
      if (segment < message_bytes || wholes == 2) continue;
      ++wholes;
      for (const int slots : kWholeSlots) {
        if (slots > kWholeSlots[0] && segment > kManySlotsSegmentMax) continue;
        add({algorithm, segment, slots, 1, false});
        // Other algorithms know no one_shot.
        if (algorithm == "node" || algorithm == "direct") add({algorithm, segment, slots, 1, true});
      }
    }
    for (const size_t ring_bytes : {message_bytes, block_bytes}) {
      for (const Tuning& tuning : block_rings(collective, ring_bytes)) {
        add({algorithm, tuning.segment_bytes, tuning.slots, tuning.window, false});
      }
    }
    if (message_bytes < kPipelineBytesMin) continue;
    for (const Tuning& tuning : kPipelines) {
      if (tuning.segment_bytes > message_bytes) continue;
      add({algorithm, tuning.segment_bytes, tuning.slots, tuning.window, false});
    }
  }
  return list;
}

std::string one_row_table(torii_collective collective, const Choice& choice) {
  return fmt::format(
      R"({{"version": 1, "rows": [{{"collective": "{}", "ranks": [1, 1048576], "bytes_max": null, "algorithm": "{}", )"
      R"("segment": {}, "slots": {}, "window": {}, "one_shot": {}}}]}})",
      name(collective), choice.algorithm, choice.segment_bytes, choice.slots, choice.window, choice.one_shot);
}

}  // namespace torii::perf
