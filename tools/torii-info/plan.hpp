// SPDX-License-Identifier: Apache-2.0
// `torii-info plan`: the algorithm and plan that a team would run for a call, with their properties.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/execution/installed_plan.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// The command line. Options that the user did not give are unset.
struct PlanQuestion {
  std::string collective;
  std::optional<int> ranks;           ///< default: those of the topology, else 4
  std::optional<std::string> bytes;   ///< default: 1M
  std::optional<std::string> type;    ///< default: f32
  std::optional<std::string> leaves;  ///< a call over leaves, as read_intervals() reads them
  std::optional<int> root;
  std::optional<int> rank;  ///< the rank whose plan is printed; default: all up to 16 ranks, else rank 0
  bool verify = false;      ///< even if it takes seconds
  bool svg = false;
  bool several_nodes = false;  ///< every rank is on a node of its own
  std::string overrides;       ///< "NAME=value" lines: the flags that are settings
};

/// The plans of one call and their properties.
struct PlanAnswer {
  Settings settings;
  std::shared_ptr<const LeafIntervals> leaves;  ///< to which the request points; nullptr: operands of ranks
  Selected selected;
  bool several_nodes = false;
  std::size_t elements = 0;  ///< of the whole vector
  std::size_t bytes = 0;
  std::string type;
  Widening widening = Widening::none;
  bool wide() const noexcept { return widening != Widening::none; }
  std::string why;
  std::vector<std::pair<std::string, std::string>> others;  ///< algorithm, reason; empty: it would serve if forced
  std::vector<Plan> shown;
  std::vector<Plan> all;         ///< if a picture is wanted
  RingSizes rings;               ///< of a team with the channels of the settings
  std::size_t extent_bytes = 0;  ///< of the outbox, that a call with the longest messages takes
  ExpressionPool pool;
  std::optional<Verdict> verdict;
  std::vector<ExpressionId> orders;  ///< by block; derived by the verifier, else as declared; may be empty
};

/// Throws Error: invalid_argument for errors in the question, unsupported if the forced algorithm cannot serve.
PlanAnswer answer(const PlanQuestion& question);

/// Draws the picture if the plans of all ranks are there. Throws Error{invalid_argument} for too many ranks. Exit code
/// 1 if the verifier found a fault.
Report report_plan(const PlanAnswer& answer);

}  // namespace torii::tools
