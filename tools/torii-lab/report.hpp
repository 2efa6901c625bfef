// SPDX-License-Identifier: Apache-2.0
// The loads of the links, as JSON and as a picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/torii-lab/laboratory.hpp"
#include "tools/torii-lab/prediction.hpp"

namespace torii::tools {

struct LabReport {
  const LabNetwork* network = nullptr;
  std::vector<std::string> command;
  int exit_code = 0;
  double seconds = 0;                         ///< from the first rank's start to the last one's end
  std::vector<std::vector<LinkCount>> loads;  ///< by node and device, during that time
  std::optional<LabPrediction> prediction;
};

/// The difference of two counts of one network.
std::vector<std::vector<LinkCount>> loads_between(const std::vector<std::vector<LinkCount>>& before,
                                                  const std::vector<std::vector<LinkCount>>& after);

/// One object: what ran, and for each directed link from, to, device, rate_mbit, bytes, packets, and share (of what the
/// link could have carried in that time). With a prediction also plan and plan_calls: the bytes of all links over those
/// that one call should send. Each link then also has plan_bytes, and of_plan: its bytes over plan_calls times
/// plan_bytes.
std::string report_json(const LabReport& report);
/// The comparison with the prediction, which there must be, as a table: a line for each directed link.
std::string report_plan(const LabReport& report);
/// A self-contained picture: an arrow for each directed link, from the sending node half the way to its neighbour,
/// redder with more bytes; layers of z side by side.
std::string report_svg(const LabReport& report);

}  // namespace torii::tools
