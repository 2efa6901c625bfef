// SPDX-License-Identifier: Apache-2.0
// What the verifier proved about the plans of a call, a line for each property.
#pragma once

#include "tools/torii-info/plan.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// Adds the rows "proof", "proved" and "links", and `verdict` to the JSON. Exit code 1 if the verifier found a fault.
void add_verdict(const PlanAnswer& answer, Report& report);

}  // namespace torii::tools
