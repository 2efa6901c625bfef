// SPDX-License-Identifier: Apache-2.0
// Calls for the simulator, of rows of the catalogue.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "collectives/proof/verify.hpp"
#include "collectives/selection/catalogue.hpp"
#include "tools/simulation/run.hpp"

namespace torii::simulated {

inline Call make_call(const char* algorithm, PlanRequest request, std::size_t bytes, Type type = Type::f32) {
  Call call;
  const Algorithm& row = *find_algorithm(algorithm);
  EXPECT_EQ(row.why_not(request), "") << algorithm;
  call.request = request;
  call.plans = plan_all(row, request);
  call.shape = call_shape(request, call.plans.front(), type, bytes);
  call.network.topology = request.topology;
  return call;
}

inline PlanRequest request_on(const std::string& topology, int ranks, std::size_t segment_bytes,
                              Collective collective = Collective::allreduce) {
  PlanRequest request;
  request.collective = collective;
  request.topology = Topology::parse(topology, ranks);
  request.tuning = {.segment_bytes = segment_bytes, .slots = 64, .window = 4};
  return request;
}

inline double microseconds(const Outcome& outcome) {
  return static_cast<double>(outcome.time) / kPicosecondsPerMicrosecond;
}

}  // namespace torii::simulated
