// SPDX-License-Identifier: Apache-2.0
// The named operations of the C interface.
#include "api/c/c_groups.hpp"
#include "api/c/c_structs.hpp"

using torii::c::are_known;
using torii::c::refused_or_in_group;
using torii::c::run_or_join;
using torii::c::unequal_call;
using torii::c::unknown;

namespace {

torii_status no_factor() {
  return torii::c::invalid(
      "op premul_sum needs a factor; use torii_run, torii_start or torii_prepare with torii_call.factor");
}

/// The named functions: what torii_run does, without the detour of a torii_call. A user's operation has no function
/// here, and is refused where plans are made.
torii_status run_plain(torii_team* team, torii::Collective collective, const void* input, void* result, size_t count,
                       torii_type type, torii_op op, int root) noexcept {
  if (!are_known(type, op)) return refused_or_in_group(team, unknown(type, op));
  if (op == TORII_PREMUL_SUM) return refused_or_in_group(team, no_factor());
  torii::CallDescription call;
  call.spec = {collective, static_cast<torii::Type>(type), static_cast<torii::OpNumber>(op), 0, root, count};
  call.memory = {input, result};
  return run_or_join(team, call);
}

}  // namespace

extern "C" {

torii_status torii_barrier(torii_team* team) { return run_or_join(team, {}); }

torii_status torii_broadcast(torii_team* team, void* buffer, size_t count, torii_type type, int root) {
  return run_plain(team, torii::Collective::broadcast, nullptr, buffer, count, type, TORII_SUM, root);
}

torii_status torii_reduce(torii_team* team, const void* input, void* result, size_t count, torii_type type, torii_op op,
                          int root) {
  return run_plain(team, torii::Collective::reduce, input, result, count, type, op, root);
}

torii_status torii_allreduce(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                             torii_op op) {
  return run_plain(team, torii::Collective::allreduce, input, result, count, type, op, 0);
}

torii_status torii_all_gather(torii_team* team, const void* input, void* result, size_t count, torii_type type) {
  return run_plain(team, torii::Collective::all_gather, input, result, count, type, TORII_SUM, 0);
}

torii_status torii_reduce_scatter(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                                  torii_op op) {
  return run_plain(team, torii::Collective::reduce_scatter, input, result, count, type, op, 0);
}

torii_status torii_reduce_scatterv(torii_team* team, const void* input, void* result, const size_t* counts,
                                   torii_type type, torii_op op) {
  if (!are_known(type, op)) return refused_or_in_group(team, unknown(type, op));
  if (op == TORII_PREMUL_SUM) return refused_or_in_group(team, no_factor());
  if (counts == nullptr) {
    return refused_or_in_group(team,
                               torii::c::invalid("counts is NULL; it must have the length of every rank's block"));
  }
  torii::CallDescription call;
  call.spec = {torii::Collective::reduce_scatter, static_cast<torii::Type>(type), static_cast<torii::OpNumber>(op)};
  call.memory = {input, result};
  call.set_block_counts(counts);
  return run_or_join(team, call);
}

torii_status torii_scan(torii_team* team, const void* input, void* result, size_t count, torii_type type, torii_op op) {
  return run_plain(team, torii::Collective::scan, input, result, count, type, op, 0);
}

torii_status torii_exscan(torii_team* team, const void* input, void* result, size_t count, torii_type type,
                          torii_op op) {
  return run_plain(team, torii::Collective::exscan, input, result, count, type, op, 0);
}

torii_status torii_alltoall(torii_team* team, const void* input, void* result, size_t count, torii_type type) {
  return run_plain(team, torii::Collective::alltoall, input, result, count, type, TORII_SUM, 0);
}

torii_status torii_scatter(torii_team* team, const void* input, void* result, size_t count, torii_type type, int root) {
  return run_plain(team, torii::Collective::scatter, input, result, count, type, TORII_SUM, root);
}

torii_status torii_gather(torii_team* team, const void* input, void* result, size_t count, torii_type type, int root) {
  return run_plain(team, torii::Collective::gather, input, result, count, type, TORII_SUM, root);
}

torii_status torii_alltoallv(torii_team* team, const void* input, const size_t* input_counts,
                             const size_t* input_displacements, void* result, const size_t* result_counts,
                             const size_t* result_displacements, torii_type type) {
  torii_call call = unequal_call(TORII_ALLTOALL, input, result, 0, type, 0);
  call.input_counts = input_counts;
  call.input_displacements = input_displacements;
  call.result_counts = result_counts;
  call.result_displacements = result_displacements;
  return torii_run(team, &call);
}

torii_status torii_scatterv(torii_team* team, const void* input, const size_t* input_counts,
                            const size_t* input_displacements, void* result, size_t count, torii_type type, int root) {
  torii_call call = unequal_call(TORII_SCATTER, input, result, count, type, root);
  call.input_counts = input_counts;
  call.input_displacements = input_displacements;
  return torii_run(team, &call);
}

torii_status torii_gatherv(torii_team* team, const void* input, size_t count, void* result, const size_t* result_counts,
                           const size_t* result_displacements, torii_type type, int root) {
  torii_call call = unequal_call(TORII_GATHER, input, result, count, type, root);
  call.result_counts = result_counts;
  call.result_displacements = result_displacements;
  return torii_run(team, &call);
}

torii_status torii_all_gatherv(torii_team* team, const void* input, size_t count, void* result,
                               const size_t* result_counts, const size_t* result_displacements, torii_type type) {
  torii_call call = unequal_call(TORII_ALL_GATHER, input, result, count, type, 0);
  call.result_counts = result_counts;
  call.result_displacements = result_displacements;
  return torii_run(team, &call);
}

}  // extern "C"
