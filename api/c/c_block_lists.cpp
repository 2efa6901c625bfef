// SPDX-License-Identifier: Apache-2.0
// The named operations with lists of addresses.
#include <torii/torii.h>

#include "api/c/c_structs.hpp"

using torii::c::unequal_call;

extern "C" {

torii_status torii_all_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                                   const size_t* result_counts, torii_type type) {
  torii_call call = unequal_call(TORII_ALL_GATHER, input, nullptr, count, type, 0);
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

torii_status torii_alltoall_list(torii_team* team, const void* const* inputs, const size_t* input_counts,
                                 void* const* results, const size_t* result_counts, size_t count, torii_type type) {
  torii_call call = unequal_call(TORII_ALLTOALL, nullptr, nullptr, count, type, 0);
  call.input_blocks = inputs;
  call.input_counts = input_counts;
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

torii_status torii_scatter_list(torii_team* team, const void* const* inputs, const size_t* input_counts, void* result,
                                size_t count, torii_type type, int root) {
  torii_call call = unequal_call(TORII_SCATTER, nullptr, result, count, type, root);
  call.input_blocks = inputs;
  call.input_counts = input_counts;
  return torii_run(team, &call);
}

torii_status torii_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                               const size_t* result_counts, torii_type type, int root) {
  torii_call call = unequal_call(TORII_GATHER, input, nullptr, count, type, root);
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

}  // extern "C"
