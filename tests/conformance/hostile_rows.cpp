// SPDX-License-Identifier: Apache-2.0
// The functions of the C interface, each with the arguments that it takes. What a good call makes goes again here.
#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/hostile.hpp"

namespace torii::tests {
namespace {

using Given = HostileArguments;

const torii_call* call_of(const Given& a) { return a.has_call ? &a.call : nullptr; }

/// Makes something by `make(place)` and gives it back by `end`.
template <typename Thing, typename Make, typename End>
torii_status made(const Given& a, Make&& make, End&& end) {
  Thing* thing = nullptr;
  const torii_status status = make(a.has_place ? &thing : nullptr);
  EXPECT_TRUE(status == TORII_OK || thing == nullptr);
  if (status == TORII_OK) {
    EXPECT_EQ(end(thing), TORII_OK) << torii_last_error();
  }
  return status;
}

/// Starts a call, hands its request to `body(requests)` as a list of one, and waits for it.
template <typename Body>
torii_status with_request(Given& a, Body&& body) {
  const torii_call call = a.call;
  torii_request* request = nullptr;
  EXPECT_EQ(torii_start(a.team, &call, &request), TORII_OK) << torii_last_error();
  const torii_status status = body(a.has_request ? &request : nullptr);
  EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
  return status;
}

/// The same with a prepared call, which has not been started.
template <typename Body>
torii_status with_prepared(Given& a, Body&& body) {
  torii_request* request = nullptr;
  EXPECT_EQ(torii_prepare(a.team, &a.call, &request), TORII_OK) << torii_last_error();
  const torii_status status = body(request);
  EXPECT_EQ(torii_wait(&request), TORII_OK) << torii_last_error();
  EXPECT_EQ(torii_request_free(&request), TORII_OK) << torii_last_error();
  return status;
}

torii_status to_self(Given& a, torii_status sent) {
  if (sent != TORII_OK) return sent;
  return torii_recv(a.team, a.result, a.count, a.type, a.peer, a.tag, nullptr);
}

torii_status from_self(Given& a, torii_status (*receive)(Given& a)) {
  const int own = torii_team_rank(a.team);
  const bool is_good = a.peer == own && a.tag >= -1 && a.count < 100 && a.result != nullptr && a.has_place &&
                       a.type == TORII_F32 && a.received.size == sizeof(a.received);
  if (is_good) {
    EXPECT_EQ(torii_send(a.team, a.input, a.count, a.type, own, 3), TORII_OK) << torii_last_error();
  }
  return receive(a);
}

thread_local int answer = 0;  ///< where functions write what nobody reads

constexpr std::uint64_t kCommon = kTeam | kCount | kType;

constexpr HostileRow kRows[] = {
    {"torii_barrier", kTeam, [](Given& a) { return torii_barrier(a.team); }, true},
    {"torii_broadcast", kCommon | kResult | kRoot,
     [](Given& a) { return torii_broadcast(a.team, a.result, a.count, a.type, a.root); }, true},
    {"torii_reduce", kCommon | kInput | kResult | kOp | kRoot,
     [](Given& a) { return torii_reduce(a.team, a.input, a.result, a.count, a.type, a.op, a.root); }, true, true},
    {"torii_allreduce", kCommon | kInput | kResult | kOp,
     [](Given& a) { return torii_allreduce(a.team, a.input, a.result, a.count, a.type, a.op); }, true},
    {"torii_all_gather", kCommon | kInput | kResult,
     [](Given& a) { return torii_all_gather(a.team, a.input, a.result, a.count, a.type); }, true},
    {"torii_reduce_scatter", kCommon | kInput | kResult | kOp,
     [](Given& a) { return torii_reduce_scatter(a.team, a.input, a.result, a.count, a.type, a.op); }, true},
    {"torii_reduce_scatterv", kTeam | kType | kInput | kResult | kOp | kInputCounts,
     [](Given& a) { return torii_reduce_scatterv(a.team, a.input, a.result, a.input_counts, a.type, a.op); }, true},
    {"torii_scan", kCommon | kInput | kResult | kOp,
     [](Given& a) { return torii_scan(a.team, a.input, a.result, a.count, a.type, a.op); }, true},
    {"torii_exscan", kCommon | kInput | kOp,
     [](Given& a) { return torii_exscan(a.team, a.input, a.result, a.count, a.type, a.op); }, true, true},
    {"torii_alltoall", kCommon | kInput | kResult,
     [](Given& a) { return torii_alltoall(a.team, a.input, a.result, a.count, a.type); }, true},
    {"torii_scatter", kCommon | kInput | kResult | kRoot,
     [](Given& a) { return torii_scatter(a.team, a.input, a.result, a.count, a.type, a.root); }, true, true},
    {"torii_gather", kCommon | kInput | kResult | kRoot,
     [](Given& a) { return torii_gather(a.team, a.input, a.result, a.count, a.type, a.root); }, true, true},
    {"torii_alltoallv", kTeam | kType | kInput | kResult | kInputCounts | kResultCounts,
     [](Given& a) {
       return torii_alltoallv(a.team, a.input, a.input_counts, a.input_displacements, a.result, a.result_counts,
                              a.result_displacements, a.type);
     },
     true},
    {"torii_scatterv", kCommon | kInput | kResult | kInputCounts | kRoot,
     [](Given& a) {
       return torii_scatterv(a.team, a.input, a.input_counts, a.input_displacements, a.result, a.count, a.type, a.root);
     },
     true, true},
    {"torii_gatherv", kCommon | kInput | kResult | kResultCounts | kRoot,
     [](Given& a) {
       return torii_gatherv(a.team, a.input, a.count, a.result, a.result_counts, a.result_displacements, a.type,
                            a.root);
     },
     true, true},
    {"torii_all_gatherv", kCommon | kInput | kResult | kResultCounts,
     [](Given& a) {
       return torii_all_gatherv(a.team, a.input, a.count, a.result, a.result_counts, a.result_displacements, a.type);
     },
     true},
    {"torii_all_gather_list", kCommon | kInput | kResults,
     [](Given& a) { return torii_all_gather_list(a.team, a.input, a.count, a.results, nullptr, a.type); }, true},
    {"torii_alltoall_list", kCommon | kInputs | kResults,
     [](Given& a) { return torii_alltoall_list(a.team, a.inputs, nullptr, a.results, nullptr, a.count, a.type); },
     true},
    {"torii_scatter_list", kCommon | kInputs | kResult | kRoot,
     [](Given& a) { return torii_scatter_list(a.team, a.inputs, nullptr, a.result, a.count, a.type, a.root); }, true,
     true},
    {"torii_gather_list", kCommon | kInput | kResults | kRoot,
     [](Given& a) { return torii_gather_list(a.team, a.input, a.count, a.results, nullptr, a.type, a.root); }, true,
     true},
    {"torii_leaves_create", kTeam | kPlace | kLeafClaim,
     [](Given& a) {
       return made<torii_leaves>(
           a, [&](auto place) { return torii_leaves_create(a.team, a.count, a.first, a.leaf_count, place); },
           torii_leaves_destroy);
     }},
    {"torii_leaves_destroy", 0, [](Given&) { return torii_leaves_destroy(nullptr); }},
    {"torii_allreduce_leaves", kLeaves | kInput | kResult | kCount | kType | kOp,
     [](Given& a) { return torii_allreduce_leaves(a.leaves, a.input, a.stride, a.result, a.count, a.type, a.op); },
     true},
    {"torii_reduce_leaves", kLeaves | kInput | kResult | kCount | kType | kOp | kRoot,
     [](Given& a) { return torii_reduce_leaves(a.leaves, a.input, a.stride, a.result, a.count, a.type, a.op, a.root); },
     true, true},
    {"torii_reduce_scatter_leaves", kLeaves | kInput | kResult | kCount | kType | kOp,
     [](Given& a) { return torii_reduce_scatter_leaves(a.leaves, a.input, a.stride, a.result, a.count, a.type, a.op); },
     true},
    {"torii_run", kTeam | kCall, [](Given& a) { return torii_run(a.team, call_of(a)); }, true},
    {"torii_start", kTeam | kCall | kPlace,
     [](Given& a) {
       return made<torii_request>(
           a, [&](auto place) { return torii_start(a.team, call_of(a), place); },
           [](torii_request* request) { return torii_wait(&request); });
     }},
    {"torii_prepare", kTeam | kCall | kPlace,
     [](Given& a) {
       return made<torii_request>(
           a, [&](auto place) { return torii_prepare(a.team, call_of(a), place); },
           [](torii_request* request) { return torii_request_free(&request); });
     }},
    {"torii_restart", kRequest,
     [](Given& a) {
       return with_prepared(a, [&](torii_request* one) { return torii_restart(a.has_request ? one : nullptr); });
     }},
    {"torii_test", kRequest | kPlace,
     [](Given& a) {
       return with_request(a, [&](auto list) { return torii_test(list, a.has_place ? &answer : nullptr); });
     }},
    {"torii_wait", kRequest, [](Given& a) { return with_request(a, [&](auto list) { return torii_wait(list); }); }},
    {"torii_wait_for", kRequest | kPlace | kSeconds,
     [](Given& a) {
       return with_request(a,
                           [&](auto list) { return torii_wait_for(list, a.seconds, a.has_place ? &answer : nullptr); });
     }},
    {"torii_test_any", kList | kPlace,
     [](Given& a) {
       return with_request(
           a, [&](auto list) { return torii_test_any(list, a.list_count, a.has_place ? &answer : nullptr); });
     }},
    {"torii_wait_any", kList | kPlace,
     [](Given& a) {
       return with_request(
           a, [&](auto list) { return torii_wait_any(list, a.list_count, a.has_place ? &answer : nullptr); });
     }},
    {"torii_test_all", kList | kPlace,
     [](Given& a) {
       return with_request(
           a, [&](auto list) { return torii_test_all(list, a.list_count, a.has_place ? &answer : nullptr); });
     }},
    {"torii_wait_all", kList,
     [](Given& a) { return with_request(a, [&](auto list) { return torii_wait_all(list, a.list_count); }); }},
    {"torii_wait_some", kList | kPlace,
     [](Given& a) {
       return with_request(a, [&](auto list) {
         int index = 0;
         return torii_wait_some(list, a.list_count, &index, nullptr, a.has_place ? &answer : nullptr);
       });
     }},
    {"torii_request_on_done", kRequest | kPlace,
     [](Given& a) {
       return with_request(a, [&](auto list) {
         return torii_request_on_done(list == nullptr ? nullptr : *list, a.has_place ? a.done : nullptr, nullptr);
       });
     }},
    {"torii_request_free", 0, [](Given&) { return torii_request_free(nullptr); }},
    {"torii_request_cancel", kRequest | kPlace,
     [](Given& a) {
       torii_request* request = nullptr;
       EXPECT_EQ(torii_start_recv(a.team, a.result, a.count, a.type, a.peer, 9, nullptr, &request), TORII_OK);
       const torii_status status =
           torii_request_cancel(a.has_request ? &request : nullptr, a.has_place ? &answer : nullptr);
       if (status != TORII_OK) {
         EXPECT_EQ(torii_request_cancel(&request, &answer), TORII_OK) << torii_last_error();
       }
       return status;
     }},
    {"torii_progress", kContext, [](Given& a) { return torii_progress(a.context, nullptr); }},
    {"torii_send", kCommon | kInput | kPeer | kTag,
     [](Given& a) { return to_self(a, torii_send(a.team, a.input, a.count, a.type, a.peer, a.tag)); }},
    {"torii_recv", kCommon | kResult | kPeer | kTag | kReceived,
     [](Given& a) {
       return from_self(
           a, [](Given& b) { return torii_recv(b.team, b.result, b.count, b.type, b.peer, b.tag, &b.received); });
     }},
    {"torii_start_send", kCommon | kInput | kPeer | kTag | kPlace,
     [](Given& a) {
       return to_self(
           a,
           made<torii_request>(
               a, [&](auto place) { return torii_start_send(a.team, a.input, a.count, a.type, a.peer, a.tag, place); },
               [](torii_request* request) { return torii_wait(&request); }));
     }},
    {"torii_start_recv", kCommon | kResult | kPeer | kTag | kPlace | kReceived,
     [](Given& a) {
       return from_self(a, [](Given& b) {
         return made<torii_request>(
             b,
             [&](auto place) {
               return torii_start_recv(b.team, b.result, b.count, b.type, b.peer, b.tag, &b.received, place);
             },
             [](torii_request* request) { return torii_wait(&request); });
       });
     }},
    {"torii_group_begin", kTeam,
     [](Given& a) {
       const torii_status status = torii_group_begin(a.team);
       if (status == TORII_OK) {
         EXPECT_EQ(torii_group_begin(a.team), TORII_INVALID_ARGUMENT);
       }
       return status == TORII_OK ? torii_group_end(a.team) : status;
     }},
    {"torii_group_end", kTeam,
     [](Given& a) {
       EXPECT_EQ(torii_group_end(a.team), TORII_INVALID_ARGUMENT);
       const torii_status status = torii_group_begin(a.team);
       return status == TORII_OK ? torii_group_end(a.team) : status;
     }},
    {"torii_refuse", kTeam,
     [](Given& a) {
       EXPECT_EQ(torii_refuse(a.team, nullptr), TORII_INVALID_ARGUMENT);
       EXPECT_EQ(torii_refuse(a.team, std::string(100'000, '%').c_str()), TORII_INVALID_ARGUMENT);
       return a.team == nullptr ? torii_refuse(a.team, "") : TORII_OK;
     }},
    {"torii_expect", kTeam | kCall | kExpected,
     [](Given& a) { return torii_expect(a.team, call_of(a), a.first, a.count, a.operand, nullptr, a.result); }},
    {"torii_choose", kTeam | kCall | kPlace | kChoice,
     [](Given& a) { return torii_choose(a.team, call_of(a), a.has_place ? &a.choice : nullptr); }},
    {"torii_split", kDeal | kPlace,
     [](Given& a) {
       std::size_t first = 0;
       return torii_split(SIZE_MAX, a.ranks, a.rank, &first, a.has_place ? &a.count : nullptr);
     }},
    {"torii_transpose", kTeam | kMatrix | kInput | kResult,
     [](Given& a) { return torii_transpose(a.team, a.input, a.result, a.rows, a.columns, a.element_bytes); }},
    {"torii_transpose_array", kTeam | kMatrix | kAxes | kInput | kResult,
     [](Given& a) {
       return torii_transpose_array(a.team, a.input, a.result, a.extents, a.axes, a.dimensions, a.element_bytes);
     }},
    {"torii_permute", kTeam | kItems | kInput | kResult,
     [](Given& a) {
       return torii_permute(a.team, a.input, a.count, a.destinations, a.result, a.result_count, a.item_bytes);
     }},
    {"torii_context_create", kPlace | kContextOptions,
     [](Given& a) {
       return made<torii_context>(
           a, [&](auto place) { return torii_context_create(&a.context_options, place); }, torii_context_destroy);
     }},
    {"torii_context_destroy", 0,
     [](Given& a) {
       EXPECT_EQ(torii_context_destroy(a.context), TORII_INVALID_ARGUMENT) << "its team lives";
       return torii_context_destroy(nullptr);
     }},
    {"torii_team_create", kContext | kPlace | kTeamOptions | kMembers,
     [](Given& a) {
       return made<torii_team>(
           a, [&](auto place) { return torii_team_create(a.context, &a.team_options, place); }, torii_team_destroy);
     }},
    {"torii_team_split", kTeam | kPlace | kTeamOptions,
     [](Given& a) {
       return made<torii_team>(
           a, [&](auto place) { return torii_team_split(a.team, 0, 0, &a.team_options, place); }, torii_team_destroy);
     }},
    {"torii_team_survivors", kPlace | kTeamOptions,
     [](Given& a) {
       torii_team* none = nullptr;
       EXPECT_EQ(torii_team_survivors(nullptr, nullptr, &none), TORII_INVALID_ARGUMENT);
       EXPECT_EQ(torii_team_survivors(a.team, nullptr, &none), TORII_INVALID_ARGUMENT) << "the team is well";
       torii_team* failed = nullptr;
       EXPECT_EQ(torii_team_split(a.team, 0, 0, nullptr, &failed), TORII_OK) << torii_last_error();
       EXPECT_EQ(torii_team_abort(failed, "hostile"), TORII_OK) << torii_last_error();
       const torii_status status = made<torii_team>(
           a, [&](auto place) { return torii_team_survivors(failed, &a.team_options, place); }, torii_team_destroy);
       EXPECT_EQ(torii_team_destroy(failed), TORII_OK);
       return status;
     }},
    {"torii_team_destroy", 0, [](Given&) { return torii_team_destroy(nullptr); }},
    {"torii_allocate", kContext | kPlace | kBytes,
     [](Given& a) {
       return made<void>(
           a, [&](auto place) { return torii_allocate(a.context, a.bytes, place); },
           [&](void* memory) { return torii_free(a.context, memory); });
     }},
    {"torii_free", kContext | kMemory, [](Given& a) { return torii_free(a.context, a.address); }},
    {"torii_register", kContext | kPlace | kFlags,
     [](Given& a) {
       return made<torii_region>(
           a, [&](auto place) { return torii_register(a.context, a.result, 64, a.flags, place); },
           [&](torii_region* region) { return torii_deregister(a.context, region); });
     }},
    {"torii_deregister", kContext | kMemory,
     [](Given& a) { return torii_deregister(a.context, static_cast<torii_region*>(a.address)); }},
};

}  // namespace

std::span<const HostileRow> hostile_rows() { return kRows; }

}  // namespace torii::tests
