// SPDX-License-Identifier: Apache-2.0
// Runs kernels over a step's operands and targets.
#include "runtime/execution/data_mover.hpp"

#include <algorithm>

namespace torii {

void fold(const kernels::Operands& operands, std::size_t count, const CallShape& shape,
          const kernels::UserFunction* user, Fold order) noexcept {
  if (user != nullptr) {
    if (order == Fold::canonical) {
      kernels::fold_user_canonical(*user, operands, count);
    } else {
      kernels::fold_user(*user, operands, count);
    }
  } else if (order == Fold::canonical) {
    kernels::fold_canonical(shape.fold, shape.type, operands, count);
  } else {
    shape.fold(operands, count);
  }
}

void DataMover::run(const Step& step) noexcept {
  places_.find(step);
  if (places_.targets().empty()) return;
  if (call_.buffers.access != nullptr) {
    by_callbacks_.run(step);
    return;
  }
  places_.store(step, [&](bool) {
    move_portions(step);
    return std::int64_t{0};
  });
}

void DataMover::move_portions(const Step& step) noexcept {
  const auto sources = places_.sources();
  wide_sources_.clear();
  if (std::ranges::any_of(sources, &StepPlaces::Place::wide)) {
    for (const StepPlaces::Place& place : sources) wide_sources_.push_back(place.wide ? 1 : 0);
  }
  const bool reads = places_.reads_private_memory();
  const std::size_t element_bytes = call_.shape->element_bytes;
  const Fold order = step.flow->fold;
  places_.for_each_portion(step, places_.targets().size() == 1, [&](std::size_t, std::size_t bytes) {
    if (reads && !places_.read_source(bytes, true)) return false;
    combine(bytes / element_bytes, order);
    return true;
  });
}

/// Folds the current portion into its targets, wide ones first since a narrow one may be a source in place.
void DataMover::combine(std::size_t count, Fold order) noexcept {
  const auto places = places_.targets();
  const auto sources = places_.source_addresses();
  const auto targets = places_.target_addresses();
  const std::size_t bytes = count * call_.shape->element_bytes;
  const bool has_wide_source = !wide_sources_.empty();
  for (const bool wide : {true, false}) {
    const std::size_t primary = primary_target(wide);
    if (primary == targets.size()) continue;
    const bool non_temporal = places[primary].non_temporal;
    const void* value = sources[0];
    if (sources.size() != 1 || has_wide_source != wide) {
      // Targets are rarely aligned alike, so a kernel could use non-temporal stores for one of them only. A target that
      // was stored past the caches is not read again.
      const bool is_copied_on = non_temporal && targets.size() > 1;
      void* const folded = is_copied_on ? StepPlaces::hot_memory() : targets[primary];
      const kernels::Operands operands = {.sources = sources.data(),
                                          .source_count = static_cast<int>(sources.size()),
                                          .targets = &folded,
                                          .target_count = 1,
                                          .wide_sources = has_wide_source ? wide_sources_.data() : nullptr,
                                          .wide_targets = wide ? 1U : 0U,
                                          .non_temporal_targets = non_temporal && !is_copied_on ? 1U : 0U};
      fold(operands, count, *call_.shape, call_.buffers.user, order);
      value = folded;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (places[i].wide != wide || targets[i] == value) continue;
      kernels::copy(targets[i], value, wide ? widened(bytes, call_.plan->widening) : bytes, places[i].non_temporal);
    }
  }
}

/// The target of that width to fold into. A target that stays in the caches is preferred, since the others are copied
/// from it while it is hot. The number of targets when there is none.
std::size_t DataMover::primary_target(bool wide) const noexcept {
  const auto places = places_.targets();
  std::size_t primary = places.size();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].wide != wide) continue;
    if (primary == places.size() || (places[primary].non_temporal && !places[i].non_temporal)) primary = i;
  }
  return primary;
}

}  // namespace torii
