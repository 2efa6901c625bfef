// SPDX-License-Identifier: Apache-2.0
// The C interface: checks what C callers hand in, turns exceptions into status codes, keeps the reason.
#include <torii/torii.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>

#include "api/c/c_groups.hpp"
#include "api/c/c_objects.hpp"
#include "api/c/c_structs.hpp"
#include "api/context/regions.hpp"
#include "api/team/expectation.hpp"
#include "api/team/members.hpp"
#include "collectives/selection/catalogue.hpp"
#include "runtime/base/cancellation.hpp"

using torii::Status;
using torii::c::answered;
using torii::c::counted;
using torii::c::invalid;
using torii::c::is_in_group;
using torii::c::is_plain;
using torii::c::is_size;
using torii::c::kForked;
using torii::c::number_in;
using torii::c::read_call;
using torii::c::read_plain;
using torii::c::read_struct;
using torii::c::refuse;
using torii::c::refused_on;
using torii::c::refused_or_in_group;
using torii::c::run_or_join;
using torii::c::to_c;

// The C enums and the C++ ones are one list of numbers.
static_assert(TORII_INTERNAL == static_cast<int>(Status::internal));
static_assert(TORII_PEER_LOST == static_cast<int>(Status::peer_lost));
static_assert(TORII_POISONED == static_cast<int>(Status::poisoned));
static_assert(TORII_REDUCE_SCATTER == static_cast<int>(torii::Collective::reduce_scatter));
static_assert(TORII_EXSCAN == static_cast<int>(torii::Collective::exscan) &&
              TORII_EXSCAN + 1 == torii::kCollectiveCount);
static_assert(TORII_BROADCAST == static_cast<int>(torii::Collective::broadcast));
static_assert(TORII_AVG == static_cast<int>(torii::OpNumber::average) &&
              TORII_PREMUL_SUM == static_cast<int>(torii::OpNumber::premul_sum));
static_assert(TORII_USER == static_cast<int>(torii::Op::user) && TORII_BXOR == static_cast<int>(torii::Op::bxor));
static_assert(TORII_FLOAT8_E5M2 == static_cast<int>(torii::Type::f8e5m2) && TORII_FLOAT8_E5M2 + 1 == torii::kTypeCount);
static_assert(TORII_F64_I32 == static_cast<int>(torii::Type::f64_i32) &&
              TORII_F16 == static_cast<int>(torii::Type::f16));

namespace {

/// The embedder's log function, behind the library's.
struct LogTarget {
  torii_log log = nullptr;
  void* data = nullptr;
  static void call(torii::LogLevel level, std::string_view message, void* self) {
    const auto& target = *static_cast<const LogTarget*>(self);
    target.log(static_cast<int>(level), std::string(message).c_str(), target.data);
  }
};

/// answered() for setup code, which makes system calls.
template <typename Body>
torii_status guarded(Body&& body) noexcept {
  const torii::CancellationHeld held;
  return answered(std::forward<Body>(body));
}

/// The same for what belongs to a context, whose memory and sockets in a forked child are its parent's.
template <typename Body>
torii_status guarded_in(const torii_context* context, Body&& body) noexcept {
  return context->context.is_forked_child() ? invalid(kForked) : guarded(body);
}

torii::TeamOptions team_options(const torii_team_options& options) {
  const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
  torii::TeamOptions own = {text(options.topology), text(options.algorithm), text(options.determinism),
                            text(options.wire),     options.segment_bytes,   text(options.tune_table),
                            text(options.rank_map)};
  own.channels = options.channels;
  own.many_callers = options.many_callers != 0;
  own.timeout_s = options.timeout_seconds;
  own.without = options.without;
  own.without_count = options.without_count;
  own.allows_minority = options.allow_minority != 0;
  return own;
}

/// Whether options are given that torii_team_survivors alone knows; `status` says what is returned then.
bool leaves_out(const torii_team_options& options, torii_status& status) {
  if (options.without == nullptr && options.without_count == 0 && options.allow_minority == 0) return false;
  status = invalid("without or allow_minority is set; only torii_team_survivors leaves ranks out");
  return true;
}

/// Hands out a team made by `make`, which may give none (colour -1).
template <typename Make>
torii_status hand_out_team(torii_context* context, torii_team** team, Make&& make) noexcept {
  if (team == nullptr) return invalid("the place for the team is NULL");
  *team = nullptr;
  return guarded_in(context, [&] {
    // Before the others are told that this rank has its team.
    auto handle = std::make_unique<torii_team>(context);
    handle->team = make();
    if (handle->team == nullptr) return;
    *team = handle.release();
    ++context->teams;
  });
}

/// Calls `body` with the plan that would run a call.
template <typename Body>
torii_status with_plan(torii_team* team, const torii_call* call, Body&& body) noexcept {
  torii_status status = TORII_OK;
  torii::Request request;
  if (!read_call(team, call, request.call, status)) return status;
  const torii::CancellationHeld held;
  Status prepared_status = Status::ok;
  const std::unique_ptr<const torii::CallPlan> call_plan = team->team->operations().prepare(request, prepared_status);
  return call_plan == nullptr ? to_c(prepared_status) : answered([&] { body(*call_plan, request.call.user()); });
}

torii_status run_any(torii_team* team, const torii_call* call) noexcept {
  torii_status status = TORII_OK;
  torii::CallDescription described;
  if (!read_call(team, call, described, status)) return refused_or_in_group(team, status);
  if (described.leaves() != nullptr && described.has_functions() && is_in_group(team)) {
    return refused_or_in_group(team, invalid("leaf is set in a group, whose calls start at its end; a function writes "
                                             "leaves when its call starts, so make this call outside of the group"));
  }
  return run_or_join(team, described);
}

}  // namespace

extern "C" {

const char* torii_status_name(torii_status status) {
  // Every name is a literal, so its view ends with a 0.
  return torii::name(static_cast<Status>(status)).data();
}

const char* torii_last_error(void) { return torii::last_error(); }

const char* torii_algorithm_name(int index) {
  const auto rows = torii::catalogue();
  if (index < 0 || static_cast<std::size_t>(index) >= rows.size()) return nullptr;
  // Every name is a literal, so its view ends with a 0.
  return rows[static_cast<std::size_t>(index)].name.data();
}

void torii_set_log(torii_log log, void* data) {
  static std::mutex mutex;
  static LogTarget target;
  const std::lock_guard lock(mutex);
  torii::set_log_function(nullptr, nullptr);
  target = {log, data};
  if (log != nullptr) torii::set_log_function(LogTarget::call, &target);
}

torii_status torii_context_create(const torii_context_options* options, torii_context** context) {
  if (context == nullptr) return invalid("the place for the context is NULL");
  *context = nullptr;
  torii_status status = TORII_OK;
  torii_context_options own;
  if (!read_struct(options, own, "torii_context_options", status)) return status;
  // A child must not answer for its parent.
  if (own.memory_of != nullptr && own.memory_of->context.is_forked_child()) return invalid(kForked);
  return guarded([&] {
    torii::JoinExchange given;
    if (own.exchange != nullptr || own.ranks != 0) given = {own.exchange, own.exchange_data, own.rank, own.ranks};
    torii::Settings settings;
    try {
      settings = torii::Settings::load(own.settings == nullptr ? "" : own.settings, nullptr, torii::algorithm_names());
    } catch (const torii::Error& error) {
      torii::Context::refuse(error, given);
    }
    const torii::Context* const memory_of = own.memory_of == nullptr ? nullptr : &own.memory_of->context;
    *context = new torii_context{torii::Context(settings, given, memory_of)};
    (*context)->context.set_idle(own.idle, own.idle_data);
  });
}

torii_status torii_context_destroy(torii_context* context) {
  if (context == nullptr) return TORII_OK;
  if (context->context.is_forked_child()) return invalid(kForked);
  if (context->teams != 0) {
    return invalid(std::to_string(context->teams) +
                   " teams of the context are alive; destroy them, and free their requests, first");
  }
  const torii::CancellationHeld held;
  delete context;
  return TORII_OK;
}

torii_status torii_allocate(torii_context* context, size_t bytes, void** address) {
  if (context == nullptr || address == nullptr) return invalid("context or the place for the address is NULL");
  *address = nullptr;
  return guarded_in(context, [&] { *address = context->context.allocate(bytes); });
}

torii_status torii_free(torii_context* context, void* address) {
  if (context == nullptr) return invalid("context is NULL");
  if (address == nullptr) return TORII_OK;
  return guarded_in(context, [&] { context->context.free(address); });
}

torii_status torii_register(torii_context* context, void* address, size_t bytes, unsigned flags,
                            torii_region** region) {
  if (context == nullptr || region == nullptr) return invalid("context or the place for the region is NULL");
  *region = nullptr;
  if ((flags & ~static_cast<unsigned>(TORII_REGISTER_ADOPT)) != 0) {
    return invalid("flags is " + std::to_string(flags) + "; use 0 or TORII_REGISTER_ADOPT");
  }
  return guarded_in(context, [&] {
    const bool adopt = (flags & TORII_REGISTER_ADOPT) != 0;
    *region = reinterpret_cast<torii_region*>(context->context.regions().add(address, bytes, adopt));
  });
}

torii_status torii_deregister(torii_context* context, torii_region* region) {
  if (context == nullptr) return invalid("context is NULL");
  if (region == nullptr) return TORII_OK;
  return guarded_in(context, [&] { context->context.regions().remove(reinterpret_cast<torii::Region*>(region)); });
}

int torii_engine_bytes(const torii_context* context, uint64_t* bytes, int engines) {
  if (context == nullptr || context->context.is_forked_child()) return 0;
  const auto all = context->context.engine_bytes();
  for (int engine = 0; bytes != nullptr && engine < engines && engine < static_cast<int>(all.size()); ++engine) {
    bytes[engine] = all[static_cast<std::size_t>(engine)];
  }
  return static_cast<int>(all.size());
}

torii_status torii_context_counters(const torii_context* context, torii_counters* counters) {
  if (context == nullptr || counters == nullptr) return invalid("context or counters is NULL");
  torii_status status = TORII_OK;
  if (!is_size(counters->size, "torii_counters", status)) return status;
  if (context->context.is_forked_child()) return invalid(kForked);
  const torii::Counters& own = context->context.counters();
  torii_counters full = {};
  full.size = counters->size;
  full.call_plans = own.call_plans.load(std::memory_order_relaxed);
  full.installed_plans = own.installed_plans.load(std::memory_order_relaxed);
  full.staging_bytes = own.staging_bytes.load(std::memory_order_relaxed);
  full.cold_messages = own.cold_messages.load(std::memory_order_relaxed);
  full.sleeps = own.sleeps.load(std::memory_order_relaxed);
  full.hops = own.hops.load(std::memory_order_relaxed);
  std::memcpy(counters, &full, std::min(counters->size, sizeof(full)));
  return TORII_OK;
}

torii_status torii_team_create(torii_context* context, const torii_team_options* options, torii_team** team) {
  if (context == nullptr) return invalid("context is NULL");
  torii_status status = TORII_OK;
  torii_team_options own;
  if (!read_struct(options, own, "torii_team_options", status) || leaves_out(own, status)) return status;
  return hand_out_team(context, team, [&] { return torii::make_team(context->context, own, team_options(own)); });
}

torii_status torii_team_split(torii_team* team, int color, int key, const torii_team_options* options,
                              torii_team** part) {
  if (team == nullptr) return invalid("team is NULL");
  torii_status status = TORII_OK;
  torii_team_options own;
  const torii::Hold hold = team->team->operations().waits().hold();
  if (hold.refusal() != Status::ok) return to_c(hold.refusal());
  if (!read_struct(options, own, "torii_team_options", status) || leaves_out(own, status)) {
    return refused_on(team, status);
  }
  if (part == nullptr) return refused_on(team, invalid("the place for the team is NULL"));
  return counted(team, [&] {
    return hand_out_team(team->context, part, [&] { return team->team->split(color, key, team_options(own)); });
  });
}

torii_status torii_team_survivors(torii_team* team, const torii_team_options* options, torii_team** survivors) {
  if (team == nullptr) return invalid("team is NULL");
  if (survivors != nullptr) *survivors = nullptr;
  return guarded_in(team->context, [&] {
    // The others wait for this rank, so they are told what it lacks.
    torii::Trouble trouble;
    torii::TeamOptions asked;
    std::unique_ptr<torii_team> handle;
    trouble.keep([&] {
      torii_status status = TORII_OK;
      torii_team_options own;
      if (!read_struct(options, own, "torii_team_options", status))
        throw torii::Error(Status{status}, torii::last_error());
      if (survivors == nullptr) throw torii::Error(Status::invalid_argument, "the place for the team is NULL");
      asked = team_options(own);
      handle = std::make_unique<torii_team>(team->context);
    });
    handle->team = team->team->survivors(asked, trouble);
    *survivors = handle.release();
    ++team->context->teams;
  });
}

torii_status torii_team_destroy(torii_team* team) {
  if (team == nullptr) return TORII_OK;
  if (team->context->context.is_forked_child()) return invalid(kForked);
  if (is_in_group(team)) {
    return invalid("this thread is in a group of the team: torii_group_end ends it");
  }
  if (team->is_destroyed.exchange(true)) {
    return invalid("the team has been destroyed; it lives until its last request is freed");
  }
  const torii::CancellationHeld held;
  const Status left = team->users > 1 ? team->team->leave() : team->team->operations().waits().check_caller();
  if (left == Status::ok) {
    if (team->life != nullptr) team->life->team = nullptr;
    torii::c::leave(team);
  } else {
    team->is_destroyed = false;
  }
  return to_c(left);
}

int torii_most_in_flight(const torii_team* team) {
  if (team == nullptr || team->context->context.is_forked_child()) return -1;
  return team->team->operations().channels().transfers_in_flight_most();
}

torii_status torii_team_abort(torii_team* team, const char* reason) {
  if (team == nullptr) return invalid("team is NULL");
  return guarded_in(team->context, [&] { team->team->operations().abort(reason == nullptr ? "" : reason); });
}

torii_status torii_run(torii_team* team, const torii_call* call) {
  if (!is_plain(call)) return run_any(team, call);
  torii::CallDescription described;
  read_plain(*call, described);
  return run_or_join(team, described);
}

torii_status torii_refuse(torii_team* team, const char* reason) {
  if (team == nullptr) return invalid("team is NULL");
  return refused_or_in_group(team, invalid(reason == nullptr ? "refused by the caller" : reason));
}

torii_status torii_expect(torii_team* team, const torii_call* call, size_t first, size_t count, torii_operand operand,
                          void* operand_data, void* out) {
  if (team == nullptr || operand == nullptr || out == nullptr) return invalid("team, operand or out is NULL");
  return with_plan(team, call, [&](const torii::CallPlan& call_plan, const torii::kernels::UserFunction* user) {
    torii::expect(*team->team, call_plan, user, first, count, operand, operand_data, static_cast<std::byte*>(out));
  });
}

torii_status torii_choose(torii_team* team, const torii_call* call, torii_choice* choice) {
  if (team == nullptr || choice == nullptr) return invalid("team or choice is NULL");
  torii_status status = TORII_OK;
  if (!is_size(choice->size, "torii_choice", status)) return status;
  return with_plan(team, call, [&](const torii::CallPlan& call_plan, const torii::kernels::UserFunction*) {
    torii_choice full = {};
    full.size = choice->size;
    full.algorithm = call_plan.selected->algorithm->name.data();
    torii::Context& context = team->team->context();
    full.transport = context.transport().capabilities().name.data();
    full.isa = torii::kernels::name(context.isa());
    full.segment_bytes = call_plan.selected->request.tuning.segment_bytes;
    full.engines = context.transport().capabilities().engines;
    full.window = call_plan.selected->request.tuning.window;
    std::memcpy(choice, &full, std::min(choice->size, sizeof(full)));
  });
}

}  // extern "C"
