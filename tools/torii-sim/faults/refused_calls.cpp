// SPDX-License-Identifier: Apache-2.0
// Calls that every team refuses.
#include <cstring>

#include "tools/torii-sim/faults/calls.hpp"

namespace torii::faults {

torii_status make_refused_call(torii_team* team, int way) {
  std::int32_t value = 0;
  torii_call call = make_call(TORII_ALLREDUCE, &value, &value, 1, TORII_I32);
  torii_request* request = nullptr;
  const std::size_t extents[] = {2, 2};
  const int axes[] = {1, 0};
  switch (way % kRefusals) {
    case 0:
      return torii_allreduce(team, &value, nullptr, 1, TORII_I32, TORII_SUM);
    case 1:
      return torii_broadcast(team, &value, 1, TORII_I32, torii_team_ranks(team));
    case 2:
      std::memset(&call.type, 99, sizeof(call.type));
      return torii_run(team, &call);
    case 3:
      return torii_scan(team, &value, &value, 1, TORII_F32, TORII_BAND);
    case 4:
      call.size = 3;
      return torii_run(team, &call);
    case 5:
      return torii_run(team, nullptr);
    case 6:
      return torii_start(team, &call, nullptr);
    case 7:
      return torii_gather(team, &value, &value, SIZE_MAX, TORII_I32, 0);
    case 8:
      return torii_alltoallv(team, &value, nullptr, nullptr, &value, nullptr, nullptr, TORII_I32);
    case 9:
      call.input = nullptr;
      return torii_prepare(team, &call, &request);
    case 10:
      call.result = nullptr;
      return torii_start(team, &call, &request);
    case 11:
      return torii_transpose_array(team, &value, &value, extents, axes, 99, 4);
    default:
      return torii_reduce_scatterv(team, &value, &value, nullptr, TORII_I32, TORII_SUM);
  }
}

}  // namespace torii::faults
