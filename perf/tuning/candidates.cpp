// SPDX-License-Identifier: Apache-2.0
// The list of candidates.
#include "perf/tuning/candidates.hpp"

#include <fmt/format.h>

#include <array>

#include "perf/common/names.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
namespace {

constexpr std::array<size_t, 6> kWholeSegments = {
    512, size_t{4} << 10, size_t{8} << 10, size_t{16} << 10, size_t{64} << 10, size_t{256} << 10};
/// Few slots stay in the reader's second-level cache, many have left it before they are written again.
constexpr std::array kWholeSlots = {4, 64};
constexpr size_t kManySlotsSegmentMax = size_t{16} << 10;
/// From here on a pipeline of segments may win.
constexpr size_t kPipelineBytesMin = size_t{16} << 10;

struct Tuning {
  size_t segment_bytes;
  int slots, window;
};
/// With few slots the rings of all peers together stay in the caches.
constexpr std::array kPipelines = {
    Tuning{size_t{16} << 10, 4, 4},  Tuning{size_t{16} << 10, 64, 8}, Tuning{size_t{32} << 10, 2, 4},
    Tuning{size_t{32} << 10, 2, 8},  Tuning{size_t{32} << 10, 8, 4},  Tuning{size_t{32} << 10, 32, 8},
    Tuning{size_t{64} << 10, 1, 8},  Tuning{size_t{64} << 10, 2, 4},  Tuning{size_t{64} << 10, 2, 8},
    Tuning{size_t{64} << 10, 8, 4},  Tuning{size_t{64} << 10, 64, 8}, Tuning{size_t{128} << 10, 1, 4},
    Tuning{size_t{128} << 10, 2, 4}, Tuning{size_t{128} << 10, 4, 2}, Tuning{size_t{128} << 10, 8, 4},
    Tuning{size_t{256} << 10, 8, 4}, Tuning{size_t{1} << 20, 2, 2}};

}  // namespace

std::string to_text(const Choice& choice) {
  return fmt::format("{} {}/{}/{}{}", choice.algorithm, bytes_text(choice.segment_bytes), choice.slots, choice.window,
                     choice.one_shot ? " one_shot" : "");
}

std::vector<Choice> candidates(torii_collective collective, size_t bytes, int ranks,
                               const std::vector<std::string>& algorithms) {
  // Segments divide blocks where every rank has one.
  const size_t message_bytes = has_blocks(collective) ? bytes / static_cast<size_t>(ranks) : bytes;
  std::vector<Choice> list;
  for (const std::string& algorithm : algorithms) {
    if (collective == TORII_BARRIER) {
      list.push_back({algorithm, 64, 4, 1, false});
      continue;
    }
    // One message: the least segment that takes the vector, and the next one, which longer vectors may share.
    int wholes = 0;
    for (const size_t segment : kWholeSegments) {
      if (segment < message_bytes || wholes == 2) continue;
      ++wholes;
      for (const int slots : kWholeSlots) {
        if (slots > kWholeSlots[0] && segment > kManySlotsSegmentMax) continue;
        list.push_back({algorithm, segment, slots, 1, false});
        // Other algorithms know no one_shot.
        if (algorithm == "node" || algorithm == "direct") list.push_back({algorithm, segment, slots, 1, true});
      }
    }
    if (message_bytes < kPipelineBytesMin) continue;
    for (const Tuning& tuning : kPipelines) {
      if (tuning.segment_bytes > message_bytes) continue;
      list.push_back({algorithm, tuning.segment_bytes, tuning.slots, tuning.window, false});
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
