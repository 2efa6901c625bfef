// SPDX-License-Identifier: Apache-2.0
// The bytes on each link of a torus or mesh, by the plan of a collective. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/torii-lab/network.hpp"

namespace torii::tools {

struct LabPrediction {
  std::string text;                               ///< collective, algorithm and bytes
  std::vector<std::vector<std::uint64_t>> bytes;  ///< payload of one call, by node and device
};

/// `what` is COLLECTIVE:ALGORITHM:BYTES, as in "allreduce:bucket:4M": broadcast (from rank 0), reduce (to rank 0) or
/// allreduce of that many bytes, in the segments of the built-in tune table. Two cables or two shortest ways between
/// nodes get half the bytes each, as by an even number of engines. Throws Error{invalid_argument}, and
/// Error{unsupported} if the algorithm cannot serve it.
LabPrediction predict(const LabNetwork& network, const std::string& what);

}  // namespace torii::tools
