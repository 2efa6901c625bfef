// SPDX-License-Identifier: Apache-2.0
// Values that no caller should give to a function of the C interface.
#include <climits>
#include <limits>

#include "tests/conformance/hostile.hpp"

namespace torii::tests {
namespace {

using Given = HostileArguments;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::size_t kTooMany[16] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
constexpr std::size_t kHalves[16] = {SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX / 2, SIZE_MAX / 2};
constexpr std::size_t kQuarters[16] = {SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 1};
constexpr std::size_t kHugeExtents[8] = {std::size_t{1} << 40, std::size_t{1} << 40, 2};
constexpr int kSameAxis[8] = {1, 1};
constexpr int kNegativeAxis[8] = {-1, 0};
constexpr int kFarAxis[8] = {1, INT_MAX};
constexpr std::uint64_t kFarPlaces[64] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
constexpr std::uint64_t kSamePlaces[64] = {0, 0, 0, 0};
constexpr int kNegativeMember[] = {-1};
constexpr int kFarMember[] = {INT_MAX};
const void* const kNoInputs[16] = {};
void* const kNoResults[16] = {};

void set_members(Given& a, const int* members, int count) {
  a.team_options.members = members;
  a.team_options.member_count = count;
  a.team_options.exchange = [](const void*, void*, std::size_t, void*) { return 1; };
}
void set_without(Given& a, const int* without, int count) {
  a.team_options.without = without;
  a.team_options.without_count = count;
}
void set_place(Given& a, int rank, int ranks) {
  a.context_options.rank = rank;
  a.context_options.ranks = ranks;
}
void set_matrix(Given& a, std::size_t side, const std::size_t* extents) {
  a.rows = a.columns = side;
  a.extents = extents;
}
void set_collective(Given& a, torii_collective collective) { a.call.collective = collective; }

constexpr HostileValue kValues[] = {
    {"context NULL", kContext, [](Given& a) { a.context = nullptr; }},
    {"team NULL", kTeam, [](Given& a) { a.team = nullptr; }},
    {"input NULL", kInput, [](Given& a) { a.input = nullptr; }},
    {"result NULL", kResult, [](Given& a) { a.result = nullptr; }},
    {"count SIZE_MAX", kCount, [](Given& a) { a.count = SIZE_MAX; }},
    {"count SIZE_MAX / 2", kCount, [](Given& a) { a.count = SIZE_MAX / 2; }},
    {"count 2^62", kCount, [](Given& a) { a.count = SIZE_MAX / 4 + 1; }},
    {"count 2^61", kCount, [](Given& a) { a.count = SIZE_MAX / 8 + 1; }},
    {"type -1", kType, [](Given& a) { set_number(a.type, -1); }},
    {"type 22", kType, [](Given& a) { set_number(a.type, TORII_FLOAT8_E5M2 + 1); }},
    {"type INT_MAX", kType, [](Given& a) { set_number(a.type, INT_MAX); }},
    {"type INT_MIN", kType, [](Given& a) { set_number(a.type, INT_MIN); }},
    {"op -1", kOp, [](Given& a) { set_number(a.op, -1); }},
    {"op 15", kOp, [](Given& a) { set_number(a.op, TORII_PREMUL_SUM + 1); }},
    {"op INT_MAX", kOp, [](Given& a) { set_number(a.op, INT_MAX); }},
    {"op INT_MIN", kOp, [](Given& a) { set_number(a.op, INT_MIN); }},
    {"op of the user", kOp, [](Given& a) { a.op = TORII_USER; }},
    {"op premul_sum", kOp, [](Given& a) { a.op = TORII_PREMUL_SUM; }},
    {"op bxor of floats", kOp, [](Given& a) { a.op = TORII_BXOR; }},
    {"op minloc of floats", kOp, [](Given& a) { a.op = TORII_MINLOC; }},
    {"root -1", kRoot, [](Given& a) { a.root = -1; }},
    {"root = ranks", kRoot, [](Given& a) { a.root = torii_team_ranks(a.team); }},
    {"root INT_MAX", kRoot, [](Given& a) { a.root = INT_MAX; }},
    {"root INT_MIN", kRoot, [](Given& a) { a.root = INT_MIN; }},
    {"input_counts NULL", kInputCounts, [](Given& a) { a.input_counts = nullptr; }},
    {"input_counts SIZE_MAX", kInputCounts, [](Given& a) { a.input_counts = kTooMany; }},
    {"input_counts SIZE_MAX / 2", kInputCounts, [](Given& a) { a.input_counts = kHalves; }},
    {"input_counts 2^62", kInputCounts, [](Given& a) { a.input_counts = kQuarters; }},
    {"result_counts NULL", kResultCounts, [](Given& a) { a.result_counts = nullptr; }},
    {"result_counts SIZE_MAX", kResultCounts, [](Given& a) { a.result_counts = kTooMany; }},
    {"result_counts SIZE_MAX / 2", kResultCounts, [](Given& a) { a.result_counts = kHalves; }},
    {"result_counts 2^62", kResultCounts, [](Given& a) { a.result_counts = kQuarters; }},
    {"inputs NULL", kInputs, [](Given& a) { a.inputs = nullptr; }},
    {"inputs of NULL", kInputs, [](Given& a) { a.inputs = kNoInputs; }},
    {"results NULL", kResults, [](Given& a) { a.results = nullptr; }},
    {"results of NULL", kResults, [](Given& a) { a.results = kNoResults; }},
    {"leaves NULL", kLeaves, [](Given& a) { a.leaves = nullptr; }},
    {"leaves of a team that is gone", kLeaves, [](Given& a) { a.leaves = a.leaves_of_gone_team; }},
    {"stride 1", kLeaves, [](Given& a) { a.stride = 1; }},
    {"stride SIZE_MAX", kLeaves, [](Given& a) { a.stride = SIZE_MAX; }},
    {"stride 2^62", kLeaves, [](Given& a) { a.stride = SIZE_MAX / 4 + 1; }},
    {"call NULL", kCall, [](Given& a) { a.has_call = false; }},
    {"call.size 0", kCall, [](Given& a) { a.call.size = 0; }},
    {"call.size 7", kCall, [](Given& a) { a.call.size = 7; }},
    {"call.size 5000", kCall, [](Given& a) { a.call.size = 5000; }},
    {"call.size SIZE_MAX", kCall, [](Given& a) { a.call.size = SIZE_MAX; }},
    {"call.collective -1", kCall, [](Given& a) { set_number(a.call.collective, -1); }},
    {"call.collective 11", kCall, [](Given& a) { set_number(a.call.collective, TORII_EXSCAN + 1); }},
    {"call.collective INT_MAX", kCall, [](Given& a) { set_number(a.call.collective, INT_MAX); }},
    {"call.collective INT_MIN", kCall, [](Given& a) { set_number(a.call.collective, INT_MIN); }},
    {"call.type INT_MIN", kCall, [](Given& a) { set_number(a.call.type, INT_MIN); }},
    {"call.op INT_MIN", kCall, [](Given& a) { set_number(a.call.op, INT_MIN); }},
    {"call.op premul_sum", kCall, [](Given& a) { a.call.op = TORII_PREMUL_SUM; }},
    {"call.op of no user", kCall, [](Given& a) { a.call.op = TORII_USER; }},
    {"call.commutes of no user", kCall,
     [](Given& a) {
       a.call.op = TORII_USER;
       a.call.commutes = INT_MIN;
     }},
    {"call.user_bytes SIZE_MAX", kCall,
     [](Given& a) {
       a.call.op = TORII_USER;
       a.call.user = [](const void*, const void*, void*, std::size_t, void*) {};
       a.call.user_bytes = SIZE_MAX;
       a.call.commutes = 1;
     }},
    {"call.input NULL", kCall, [](Given& a) { a.call.input = nullptr; }},
    {"call.result NULL", kCall, [](Given& a) { a.call.result = nullptr; }},
    {"call.count SIZE_MAX", kCall, [](Given& a) { a.call.count = SIZE_MAX; }},
    {"call.count 2^62", kCall, [](Given& a) { a.call.count = SIZE_MAX / 4 + 1; }},
    {"call.root INT_MIN", kCall,
     [](Given& a) {
       set_collective(a, TORII_BROADCAST);
       a.call.root = INT_MIN;
     }},
    {"call.unequal of an allreduce", kCall, [](Given& a) { a.call.unequal = 1; }},
    {"call.unequal without counts", kCall,
     [](Given& a) {
       set_collective(a, TORII_ALLTOALL);
       a.call.unequal = INT_MIN;
     }},
    {"call.input_displacements SIZE_MAX", kCall,
     [](Given& a) {
       set_collective(a, TORII_ALLTOALL);
       a.call.unequal = 1;
       a.call.input_counts = a.call.result_counts = a.input_counts;
       a.call.input_displacements = kTooMany;
     }},
    {"call.input_blocks, equal", kCall, [](Given& a) { a.call.input_blocks = a.inputs; }},
    {"call.load alone", kCall, [](Given& a) { a.call.load = [](void*, std::size_t, std::size_t, void*) {}; }},
    {"call.leaf without leaves", kCall, [](Given& a) { a.call.leaf = [](std::size_t, void*, void*) { return 0; }; }},
    {"call.leaves of a team that is gone", kCall, [](Given& a) { a.call.leaves = a.leaves_of_gone_team; }},
    {"call.leaf_stride 1", kCall,
     [](Given& a) {
       a.call.leaves = a.leaves;
       a.call.leaf_stride = 1;
     }},
    {"call.timeout_seconds NaN", kCall, [](Given& a) { a.call.timeout_seconds = kNan; }},
    {"call.timeout_seconds -1", kCall, [](Given& a) { a.call.timeout_seconds = -1; }},
    {"call.timeout_seconds infinite", kCall, [](Given& a) { a.call.timeout_seconds = kInfinite; }},
    {"team_options.size 0", kTeamOptions, [](Given& a) { a.team_options.size = 0; }},
    {"team_options.size SIZE_MAX", kTeamOptions, [](Given& a) { a.team_options.size = SIZE_MAX; }},
    {"team_options.topology", kTeamOptions, [](Given& a) { a.team_options.topology = "torus:-1x9999999999999"; }},
    {"team_options.topology empty", kTeamOptions, [](Given& a) { a.team_options.topology = "torus:"; }},
    {"team_options.algorithm", kTeamOptions, [](Given& a) { a.team_options.algorithm = "\xff\n%s"; }},
    {"team_options.determinism", kTeamOptions, [](Given& a) { a.team_options.determinism = "%n"; }},
    {"team_options.wire", kTeamOptions, [](Given& a) { a.team_options.wire = "x"; }},
    {"team_options.segment_bytes 1", kTeamOptions, [](Given& a) { a.team_options.segment_bytes = 1; }},
    {"team_options.segment_bytes SIZE_MAX", kTeamOptions, [](Given& a) { a.team_options.segment_bytes = SIZE_MAX; }},
    {"team_options.tune_table", kTeamOptions, [](Given& a) { a.team_options.tune_table = "{\"rows\": [[[[["; }},
    {"team_options.rank_map", kTeamOptions, [](Given& a) { a.team_options.rank_map = "list:,,-1"; }},
    {"team_options.channels -1", kTeamOptions, [](Given& a) { a.team_options.channels = -1; }},
    {"team_options.channels INT_MAX", kTeamOptions, [](Given& a) { a.team_options.channels = INT_MAX; }},
    {"team_options.timeout_seconds NaN", kTeamOptions, [](Given& a) { a.team_options.timeout_seconds = kNan; }},
    {"team_options.timeout_seconds -1", kTeamOptions, [](Given& a) { a.team_options.timeout_seconds = -1; }},
    {"team_options.timeout_seconds 1e300", kTeamOptions, [](Given& a) { a.team_options.timeout_seconds = 1e300; }},
    {"team_options.members -1", kMembers, [](Given& a) { set_members(a, kNegativeMember, 1); }},
    {"team_options.members INT_MAX", kMembers, [](Given& a) { set_members(a, kFarMember, 1); }},
    {"team_options.member_count 0", kMembers, [](Given& a) { set_members(a, kFarMember, 0); }},
    {"team_options.member_count -1", kMembers, [](Given& a) { set_members(a, kFarMember, -1); }},
    {"team_options.member_count INT_MAX", kMembers, [](Given& a) { set_members(a, kFarMember, INT_MAX); }},
    {"team_options.number", kMembers, [](Given& a) { a.team_options.number = UINT64_MAX; }},
    {"team_options.without -1", kTeamOptions, [](Given& a) { set_without(a, kNegativeMember, 1); }},
    {"team_options.without INT_MAX", kTeamOptions, [](Given& a) { set_without(a, kFarMember, 1); }},
    {"team_options.without_count -1", kTeamOptions, [](Given& a) { set_without(a, kFarMember, -1); }},
    {"team_options.without_count INT_MIN", kTeamOptions, [](Given& a) { set_without(a, nullptr, INT_MIN); }},
    {"team_options.without NULL", kTeamOptions, [](Given& a) { set_without(a, nullptr, 2); }},
    {"context_options.size 0", kContextOptions, [](Given& a) { a.context_options.size = 0; }},
    {"context_options.size SIZE_MAX", kContextOptions, [](Given& a) { a.context_options.size = SIZE_MAX; }},
    {"context_options.ranks -1", kContextOptions, [](Given& a) { a.context_options.ranks = -1; }},
    {"context_options.ranks INT_MIN", kContextOptions, [](Given& a) { a.context_options.ranks = INT_MIN; }},
    {"context_options.ranks INT_MAX", kContextOptions, [](Given& a) { a.context_options.ranks = INT_MAX; }},
    {"context_options.rank INT_MIN", kContextOptions,
     [](Given& a) {
       a.context_options.ranks = 1;
       a.context_options.rank = INT_MIN;
     }},
    {"context_options.rank = ranks", kContextOptions, [](Given& a) { set_place(a, 1, 1); }},
    {"context_options.settings", kContextOptions, [](Given& a) { a.context_options.settings = "=\n==\n%s"; }},
    {"context_options.settings ENGINES=", kContextOptions, [](Given& a) { a.context_options.settings = "ENGINES="; }},
    {"context_options.settings TIMEOUT=nan", kContextOptions,
     [](Given& a) { a.context_options.settings = "TIMEOUT=nan"; }},
    {"context_options.settings ARENA", kContextOptions,
     [](Given& a) { a.context_options.settings = "ARENA=99999999999999999999999"; }},
    {"place NULL", kPlace, [](Given& a) { a.has_place = false; }},
    {"request NULL", kRequest, [](Given& a) { a.has_request = false; }},
    {"peer -2", kPeer, [](Given& a) { a.peer = -2; }},
    {"peer = ranks", kPeer, [](Given& a) { a.peer = torii_team_ranks(a.team); }},
    {"peer INT_MAX", kPeer, [](Given& a) { a.peer = INT_MAX; }},
    {"peer INT_MIN", kPeer, [](Given& a) { a.peer = INT_MIN; }},
    {"tag -2", kTag, [](Given& a) { a.tag = -2; }},
    {"tag INT_MIN", kTag, [](Given& a) { a.tag = INT_MIN; }},
    {"received.size 0", kReceived, [](Given& a) { a.received.size = 0; }},
    {"received.size 7", kReceived, [](Given& a) { a.received.size = 7; }},
    {"seconds NaN", kSeconds, [](Given& a) { a.seconds = kNan; }},
    {"seconds -1", kSeconds, [](Given& a) { a.seconds = -1; }},
    {"seconds -infinite", kSeconds, [](Given& a) { a.seconds = -kInfinite; }},
    {"list of -1", kList, [](Given& a) { a.list_count = -1; }},
    {"list of INT_MIN", kList, [](Given& a) { a.list_count = INT_MIN; }},
    {"list NULL", kList, [](Given& a) { a.has_request = false; }},
    {"element_bytes 0", kMatrix, [](Given& a) { a.element_bytes = 0; }},
    {"element_bytes 17", kMatrix, [](Given& a) { a.element_bytes = 17; }},
    {"element_bytes SIZE_MAX", kMatrix, [](Given& a) { a.element_bytes = SIZE_MAX; }},
    {"rows and columns 2^32", kMatrix, [](Given& a) { set_matrix(a, std::size_t{1} << 32, kHugeExtents); }},
    {"rows SIZE_MAX", kMatrix, [](Given& a) { a.rows = SIZE_MAX; a.extents = kTooMany; }},
    {"extents NULL", kAxes, [](Given& a) { a.extents = nullptr; }},
    {"axes NULL", kAxes, [](Given& a) { a.axes = nullptr; }},
    {"axes 1, 1", kAxes, [](Given& a) { a.axes = kSameAxis; }},
    {"axes -1, 0", kAxes, [](Given& a) { a.axes = kNegativeAxis; }},
    {"axes 1, INT_MAX", kAxes, [](Given& a) { a.axes = kFarAxis; }},
    {"dimensions 0", kAxes, [](Given& a) { a.dimensions = 0; }},
    {"dimensions -1", kAxes, [](Given& a) { a.dimensions = -1; }},
    {"dimensions INT_MAX", kAxes, [](Given& a) { a.dimensions = INT_MAX; }},
    {"item_bytes 0", kItems, [](Given& a) { a.item_bytes = 0; }},
    {"item_bytes SIZE_MAX", kItems, [](Given& a) { a.item_bytes = SIZE_MAX; }},
    {"items SIZE_MAX", kItems, [](Given& a) { a.count = SIZE_MAX; }},
    {"result_count SIZE_MAX", kItems, [](Given& a) { a.result_count = SIZE_MAX; }},
    {"result_count 0", kItems, [](Given& a) { a.result_count = 0; }},
    {"destinations NULL", kItems, [](Given& a) { a.destinations = nullptr; }},
    {"destinations UINT64_MAX", kItems, [](Given& a) { a.destinations = kFarPlaces; }},
    {"destinations 0", kItems, [](Given& a) { a.destinations = kSamePlaces; }},
    {"ranks 0", kDeal, [](Given& a) { a.ranks = 0; }},
    {"ranks INT_MIN", kDeal, [](Given& a) { a.ranks = INT_MIN; }},
    {"rank -1", kDeal, [](Given& a) { a.rank = -1; }},
    {"rank INT_MAX", kDeal, [](Given& a) { a.rank = INT_MAX; }},
    {"leaves 0", kLeafClaim, [](Given& a) { a.count = 0; }},
    {"leaves SIZE_MAX", kLeafClaim, [](Given& a) { a.count = SIZE_MAX; }},
    {"leaves from SIZE_MAX", kLeafClaim, [](Given& a) { a.first = SIZE_MAX; }},
    {"leaves of this rank SIZE_MAX", kLeafClaim, [](Given& a) { a.leaf_count = SIZE_MAX; }},
    {"expected from SIZE_MAX", kExpected, [](Given& a) { a.first = SIZE_MAX; }},
    {"expected count SIZE_MAX", kExpected, [](Given& a) { a.count = SIZE_MAX; }},
    {"expected beyond the end", kExpected, [](Given& a) { a.first = 1; a.count = SIZE_MAX; }},
    {"operand NULL", kExpected, [](Given& a) { a.operand = nullptr; }},
    {"out NULL", kExpected, [](Given& a) { a.result = nullptr; }},
    {"choice.size 0", kChoice, [](Given& a) { a.choice.size = 0; }},
    {"choice.size SIZE_MAX", kChoice, [](Given& a) { a.choice.size = SIZE_MAX; }},
    {"bytes 0", kBytes, [](Given& a) { a.bytes = 0; }},
    {"bytes SIZE_MAX", kBytes, [](Given& a) { a.bytes = SIZE_MAX; }},
    {"bytes SIZE_MAX - 63", kBytes, [](Given& a) { a.bytes = SIZE_MAX - 63; }},
    {"bytes SIZE_MAX / 2", kBytes, [](Given& a) { a.bytes = SIZE_MAX / 2; }},
    {"memory of somebody else", kMemory, [](Given& a) { a.address = a.result; }},
    {"memory at the end", kMemory, [](Given& a) { a.address = reinterpret_cast<void*>(UINTPTR_MAX); }},
    {"flags 2", kFlags, [](Given& a) { a.flags = 2; }},
    {"flags of all bits", kFlags, [](Given& a) { a.flags = UINT_MAX; }},
};

}  // namespace

std::span<const HostileValue> hostile_values() { return kValues; }

}  // namespace torii::tests
