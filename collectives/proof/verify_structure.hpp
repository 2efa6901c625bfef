// SPDX-License-Identifier: Apache-2.0
// The checks of plans, streams and flows on their own, before both ends of streams are joined.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/proof/verify_steps.hpp"
#include "runtime/plan/plan.hpp"

namespace torii::verification {

/// "rank 3 lane 0 flow 1 (up tree 0)"
std::string flow_text(int rank, int lane, int flow, std::string_view label);
/// "stream 3 -> 5 tag 1"
std::string stream_text(int sender, int receiver, int tag);

/// There is a plan for each rank, and their numbers of ranks, blocks and slots fit together.
void check_plan_shapes(const PlanRequest& request, std::span<const Plan> plans, Faults& faults);
/// Each plan knows the most streams that any rank has.
void check_maxima(std::span<const Plan> plans, Faults& faults);
/// Checks one flow on its own: its walk, its stream numbers and the forms that each delivery asks for.
void check_flow(const Plan& plan, const Flow& flow, const std::string& where, Faults& faults);
void check_stream(const Stream& stream, int rank, const std::string& where, Faults& faults);
/// A way may be named only where there are two and the topology leaves the choice to the sender.
void check_ties(const Topology& topology, int rank, const Stream& stream, const std::string& where, Faults& faults);

}  // namespace torii::verification
