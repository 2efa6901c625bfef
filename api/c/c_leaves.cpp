// SPDX-License-Identifier: Apache-2.0
// Sums over leaves of the C interface.
#include "api/c/c_groups.hpp"
#include "api/c/c_objects.hpp"
#include "runtime/base/cancellation.hpp"

using torii::c::answered;
using torii::c::are_known;
using torii::c::counted;
using torii::c::invalid;
using torii::c::open_group;
using torii::c::refused_on;
using torii::c::refused_or_in_group;
using torii::c::run_or_join;
using torii::c::to_c;
using torii::c::unknown;

namespace {

struct LeafBuffers {
  const void* input;
  size_t stride;
  void* result;
  size_t count;
};

torii_status run_over(const torii_leaves* leaves, torii::Collective collective, const LeafBuffers& buffers,
                      torii_type type, torii_op op, int root) noexcept {
  if (leaves == nullptr) return invalid("leaves is NULL; torii_leaves_create makes it");
  torii_team* const team = leaves->team();
  if (team == nullptr) return invalid("the team of the leaves has been destroyed");
  if (!are_known(type, op)) return refused_or_in_group(team, unknown(type, op));
  torii::CallDescription call;
  call.spec = {collective, static_cast<torii::Type>(type), static_cast<torii::OpNumber>(op), 0, root, buffers.count};
  call.memory = {buffers.input, buffers.result};
  call.set_leaves({leaves->intervals, buffers.stride, {}});
  return run_or_join(team, call);
}

}  // namespace

extern "C" {

torii_status torii_leaves_create(torii_team* team, size_t leaves, size_t first, size_t count, torii_leaves** handle) {
  if (handle != nullptr) *handle = nullptr;
  if (team == nullptr) return invalid("team is NULL");
  if (open_group(team) != nullptr) {
    return refused_or_in_group(team, invalid("this thread is in a group of the team; make leaves before it"));
  }
  if (handle == nullptr) return refused_on(team, invalid("the place for the leaves is NULL"));
  const torii::CancellationHeld held;
  const torii::Hold hold = team->team->operations().waits().hold();
  if (hold.refusal() != torii::Status::ok) return to_c(hold.refusal());
  return counted(team, [&] {
    return answered([&] {
      if (team->life == nullptr) team->life = std::make_shared<torii_team_life>(team);
      auto fresh = std::make_unique<torii_leaves>(team->life);
      fresh->intervals = &team->team->agree_on_leaves({leaves, first, count});
      *handle = fresh.release();
    });
  });
}

torii_status torii_leaves_destroy(torii_leaves* handle) {
  delete handle;
  return TORII_OK;
}

torii_status torii_allreduce_leaves(const torii_leaves* leaves, const void* input, size_t stride, void* result,
                                    size_t count, torii_type type, torii_op op) {
  return run_over(leaves, torii::Collective::allreduce, {input, stride, result, count}, type, op, 0);
}

torii_status torii_reduce_leaves(const torii_leaves* leaves, const void* input, size_t stride, void* result,
                                 size_t count, torii_type type, torii_op op, int root) {
  return run_over(leaves, torii::Collective::reduce, {input, stride, result, count}, type, op, root);
}

torii_status torii_reduce_scatter_leaves(const torii_leaves* leaves, const void* input, size_t stride, void* result,
                                         size_t count, torii_type type, torii_op op) {
  return run_over(leaves, torii::Collective::reduce_scatter, {input, stride, result, count}, type, op, 0);
}

}  // extern "C"
