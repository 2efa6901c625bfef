// SPDX-License-Identifier: Apache-2.0
// The named operations with lists of addresses.
#include <torii/torii.h>

namespace {

torii_call list_call(torii_collective collective, size_t count, torii_type type, int root) {
  torii_call call = {};
  call.size = sizeof(call);
  call.collective = collective;
  call.count = count;
  call.type = type;
  call.root = root;
  call.unequal = 1;
  return call;
}

}  // namespace

extern "C" {

torii_status torii_all_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                                   const size_t* result_counts, torii_type type) {
  torii_call call = list_call(TORII_ALL_GATHER, count, type, 0);
  call.input = input;
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

torii_status torii_alltoall_list(torii_team* team, const void* const* inputs, const size_t* input_counts,
                                 void* const* results, const size_t* result_counts, size_t count, torii_type type) {
  torii_call call = list_call(TORII_ALLTOALL, count, type, 0);
  call.input_blocks = inputs;
  call.input_counts = input_counts;
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

torii_status torii_scatter_list(torii_team* team, const void* const* inputs, const size_t* input_counts, void* result,
                                size_t count, torii_type type, int root) {
  torii_call call = list_call(TORII_SCATTER, count, type, root);
  call.input_blocks = inputs;
  call.input_counts = input_counts;
  call.result = result;
  return torii_run(team, &call);
}

torii_status torii_gather_list(torii_team* team, const void* input, size_t count, void* const* results,
                               const size_t* result_counts, torii_type type, int root) {
  torii_call call = list_call(TORII_GATHER, count, type, root);
  call.input = input;
  call.result_blocks = results;
  call.result_counts = result_counts;
  return torii_run(team, &call);
}

}  // extern "C"
