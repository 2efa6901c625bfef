// SPDX-License-Identifier: Apache-2.0
// Folding and lists, which the loops share.
#include "perf/limits/loops.hpp"

#include <algorithm>
#include <cstring>

namespace torii::perf {
namespace {

/// Results from here on do not stay in the caches of machines that we know.
constexpr size_t kPastCachesBytes = size_t{8} << 20;

}  // namespace

Loop::Loop(Area& area, const CallData& data, const Movement& movement, const char* name)
    : area_(area),
      data_(data),
      movement_(movement),
      sources_(static_cast<size_t>(movement.ranks)),
      past_caches_(data.result_elements() * sizeof(float) >= kPastCachesBytes),
      name_(name),
      fold_(kernels::find(Op::sum, Type::f32)) {}

void Loop::fold(const std::vector<const void*>& sources, std::span<void* const> targets, size_t bytes,
                bool past_caches) const {
  const kernels::Operands operands{.sources = sources.data(),
                                   .source_count = static_cast<int>(sources.size()),
                                   .targets = targets.data(),
                                   .target_count = static_cast<int>(targets.size()),
                                   .wide_sources = nullptr,
                                   .wide_targets = 0,
                                   .non_temporal_targets = past_caches ? ~uint32_t{0} : 0};
  fold_(operands, bytes / sizeof(float));
}

void Loop::copy_own() const {
  if (movement_.folds || !movement_.is_source(me()) || !movement_.is_reader(me()) || movement_.lane_bytes == 0) return;
  std::byte* const target = data_.result() + movement_.place_of(me());
  const std::byte* const source = data_.input() + movement_.lane_of(me()) * movement_.lane_bytes;
  if (target != source) copy(target, source, movement_.lane_bytes);
}

Loop::Part Loop::part_of(int rank, size_t bytes) const {
  constexpr size_t kLineBytes = 64;
  const size_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  const auto cut = [&](int at) {
    const size_t first = lines * static_cast<size_t>(at) / static_cast<size_t>(ranks()) * kLineBytes;
    return std::min(first, bytes);
  };
  return {cut(rank), cut(rank + 1) - cut(rank)};
}

Loops private_loops(Area& area, const CallData& data, const Movement& movement) {
  Loops loops;
  add_line_loop(area, data, movement, loops);
  add_slots_loops(area, data, movement, loops);
  add_cross_loops(area, data, movement, loops);
  return loops;
}

Loops mapped_loops(Area& area, const CallData& data, const Movement& movement) {
  Loops loops;
  add_line_loop(area, data, movement, loops);
  add_mapped_loops(area, data, movement, loops);
  return loops;
}

}  // namespace torii::perf
