// SPDX-License-Identifier: Apache-2.0
// The call classes that teams have met: teams for which everything is chosen alike share them.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "collectives/selection/selection.hpp"
#include "reduce_kernels/types.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/plan/leaves.hpp"
#include "runtime/plan/plan.hpp"
#include "runtime/rings/ring_area.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// The properties by which classes differ besides the lengths for which a choice holds. Kernels are found call by call,
/// so type and operation count only as far as they change the plan.
struct ClassKey {
  Collective collective = Collective::barrier;
  int root = 0;
  Determinism determinism = Determinism::run;
  Widening widening = Widening::none;
  bool unequal = false;      ///< blocks have lengths of their own
  bool has_counts = false;   ///< lengths that all ranks know
  bool is_internal = false;  ///< for which nothing is forced
  const LeafIntervals* leaves = nullptr;
  /// CallShape::unit_bytes where it is more than 64. Segments are multiples of 64 bytes, so shorter units change none.
  std::size_t long_unit_bytes = 0;

  bool operator==(const ClassKey&) const = default;
};

/// The common part of the calls of a class: the choice, with segments that fit into the standing rings, and this rank's
/// plan.
struct ClassPlan : Selected {
  Widening widening = Widening::none;
  Plan plan;
  std::string name;             ///< equal for classes with equal plans and tuning
  bool may_be_unequal = false;  ///< flows: blocks may have lengths that the root tells
};

struct KnownClass {
  ClassKey key;
  std::shared_ptr<const ClassPlan> selected;

  /// `bytes`: of the vector, as the layout counts them; of no meaning where blocks have lengths of their own.
  bool serves(const ClassKey& other, std::size_t bytes) const noexcept {
    return key == other && (key.unequal || selected->holds.contains(bytes));
  }
};

/// All that a class's plan depends on besides its key, within one context.
struct ChoiceRules {
  Topology topology = Topology::node(1);
  int rank = 0;
  Determinism determinism = Determinism::run;
  bool wide_wire = false;
  Forced forced;
  std::shared_ptr<const TuneTable> own_tune_table;  ///< of the team; nullptr: that of the context
  RingSizes rings;                                  ///< that plans use

  bool operator==(const ChoiceRules&) const = default;
};

/// From any thread. A team asks only about classes that it does not know itself.
class KnownClasses {
 public:
  explicit KnownClasses(ChoiceRules rules) : rules_(std::move(rules)) {}

  const ChoiceRules& rules() const noexcept { return rules_; }
  /// nullptr: no team has met it, or 256 others since.
  std::shared_ptr<const ClassPlan> find(const ClassKey& key, std::size_t bytes) const;
  void add(const KnownClass& known);

 private:
  const ChoiceRules rules_;
  mutable std::mutex mutex_;
  std::deque<KnownClass> classes_;  ///< the newest at the end
};

}  // namespace torii
