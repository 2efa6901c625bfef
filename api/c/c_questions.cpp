// SPDX-License-Identifier: Apache-2.0
// Questions of C callers that change nothing: names, places of ranks, the health of a team.
#include <torii/torii.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "api/c/c_objects.hpp"
#include "reduce_kernels/types.hpp"
#include "transports/shared_memory/nodes.hpp"

using torii::c::invalid;
using torii::c::is_from_0_to;
using torii::c::kOpLast;
using torii::c::kTypeLast;
using torii::c::refuse;

// The version of the header is that of the project.
#define TORII_TEXT_OF(number) #number
#define TORII_TEXT(number) TORII_TEXT_OF(number)
static_assert(std::string_view(TORII_VERSION) ==
              TORII_TEXT(TORII_VERSION_MAJOR) "." TORII_TEXT(TORII_VERSION_MINOR) "." TORII_TEXT(TORII_VERSION_PATCH));

namespace {

bool has_rank(const torii_context* context, int rank) {
  return context != nullptr && is_from_0_to(rank, context->context.ranks() - 1);
}

/// Writes at most `capacity` of the members that `ask` gives, and returns their number. Returns -1 if it cannot, as in
/// a forked child, where a lock of the parent may be closed for ever.
template <typename Ask>
int list_members(const torii_team* team, int* members, int capacity, const Ask& ask) {
  if (team == nullptr || team->context->context.is_forked_child()) return -1;
  int count = -1;
  (void)torii::c::answered([&] {
    const std::vector<int> list = ask();
    count = static_cast<int>(list.size());
    for (int i = 0; members != nullptr && i < std::min(count, capacity); ++i) {
      members[i] = list[static_cast<std::size_t>(i)];
    }
  });
  return count;
}

}  // namespace

extern "C" {

const char* torii_version(void) { return TORII_VERSION; }

size_t torii_type_bytes(torii_type type) {
  return is_from_0_to(type, kTypeLast) ? torii::size_of(static_cast<torii::Type>(type)) : 0;
}

const char* torii_type_name(torii_type type) {
  return is_from_0_to(type, kTypeLast) ? torii::name(static_cast<torii::Type>(type)) : nullptr;
}

const char* torii_op_name(torii_op op) {
  return is_from_0_to(op, kOpLast) ? torii::name(static_cast<torii::OpNumber>(op)) : nullptr;
}

const char* torii_collective_name(torii_collective collective) {
  if (!is_from_0_to(collective, TORII_EXSCAN)) return nullptr;
  // Every name is a literal, so its view ends with a 0.
  return torii::name(static_cast<torii::Collective>(collective)).data();
}

int torii_context_rank(const torii_context* context) { return context == nullptr ? -1 : context->context.rank(); }

int torii_context_ranks(const torii_context* context) { return context == nullptr ? -1 : context->context.ranks(); }

int torii_context_nodes(const torii_context* context) {
  return context == nullptr ? -1 : context->context.nodes().count();
}

int torii_context_node(const torii_context* context, int rank) {
  return has_rank(context, rank) ? context->context.nodes().node(rank) : -1;
}

const char* torii_context_host(const torii_context* context, int rank) {
  return has_rank(context, rank) ? context->context.host(rank).c_str() : nullptr;
}

int torii_context_local_rank(const torii_context* context) {
  if (context == nullptr) return -1;
  const torii::Context& own = context->context;
  int before = 0;
  for (int rank = 0; rank < own.rank(); ++rank) before += own.nodes().is_own(rank) ? 1 : 0;
  return before;
}

int torii_context_local_ranks(const torii_context* context) {
  return context == nullptr ? -1 : context->context.nodes().own_ranks();
}

torii_context* torii_team_context(const torii_team* team) { return team == nullptr ? nullptr : team->context; }

int torii_team_rank(const torii_team* team) { return team == nullptr ? -1 : team->team->rank(); }

int torii_team_ranks(const torii_team* team) { return team == nullptr ? -1 : team->team->ranks(); }

int torii_team_context_rank(const torii_team* team, int member) {
  if (team == nullptr || !is_from_0_to(member, team->team->ranks() - 1)) return -1;
  return team->team->members().at(member).context_rank;
}

torii_status torii_team_health(const torii_team* team) {
  if (team == nullptr) return invalid("team is NULL");
  if (team->context->context.is_forked_child()) return invalid(torii::c::kForked);
  torii_status status = TORII_INTERNAL;
  const torii_status asked = torii::c::answered([&] {
    const torii::Cause health = team->team->health().verdict();
    status = torii::c::to_c(health.status);
    if (status != TORII_OK) torii::set_last_error(health.text);
  });
  return asked == TORII_OK ? status : asked;
}

int torii_team_lost(const torii_team* team, int* members, int capacity) {
  return list_members(team, members, capacity, [&] { return team->team->health().lost_members(); });
}

int torii_team_absent(const torii_team* team, int* members, int capacity) {
  return list_members(team, members, capacity, [&] { return team->team->health().absent().list(); });
}

}  // extern "C"
