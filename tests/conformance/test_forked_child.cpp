// SPDX-License-Identifier: Apache-2.0
// A child that is forked while another thread is inside a team: the child has no such thread, so no lock of the
// parent's ever opens there. Every call is refused at once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/thread_team.hpp"

namespace torii::tests {
namespace {

/// Another thread is inside the team, in a function of the caller that this object lets go at its end.
class Holder {
 public:
  explicit Holder(torii_request* request)
      : thread_([this, request] {
          EXPECT_EQ(torii_request_on_done(request, hold, this), TORII_OK) << torii_last_error();
        }) {
    while (!is_inside_) std::this_thread::yield();
  }
  ~Holder() {
    may_leave_ = true;
    thread_.join();
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  static void hold(torii_status, void* self) {
    auto& holder = *static_cast<Holder*>(self);
    holder.is_inside_ = true;
    while (!holder.may_leave_) std::this_thread::yield();
  }
  std::atomic<bool> is_inside_ = false;
  std::atomic<bool> may_leave_ = false;
  std::thread thread_;
};

struct Things {
  torii_context* context;
  torii_team* team;
  torii_request* ended;  ///< that nobody has waited for
  torii_request* persistent;
};

bool is_refused(torii_status status) {
  return status == TORII_INVALID_ARGUMENT && std::strstr(torii_last_error(), "forked") != nullptr;
}

/// Each returns true if the library refused it as it should.
using Calls = std::vector<std::function<bool()>>;

template <typename Make>
std::function<bool()> refused(Make make) {
  return [=] { return is_refused(make()); };
}

Calls calls_of_requests(const Things& things) {
  static torii_request* request = nullptr;
  static torii_request* persistent = nullptr;
  static int answer = 0;
  static int indices[1] = {};
  request = things.ended;
  persistent = things.persistent;
  return {
      refused([=] { return torii_restart(persistent); }),
      refused([=] { return torii_request_free(&persistent); }),
      refused([=] { return torii_test(&request, &answer); }),
      refused([=] { return torii_wait(&request); }),
      refused([=] { return torii_wait_for(&request, 0.01, &answer); }),
      refused([=] { return torii_test_any(&request, 1, &answer); }),
      refused([=] { return torii_wait_any(&request, 1, &answer); }),
      refused([=] { return torii_test_all(&request, 1, &answer); }),
      refused([=] { return torii_wait_all(&request, 1); }),
      refused([=] { return torii_wait_some(&request, 1, indices, nullptr, &answer); }),
      refused([=] {
        return torii_request_on_done(
            request, [](torii_status, void*) {}, nullptr);
      }),
  };
}

Calls calls_of(const Things& things) {
  static std::int64_t value = 1;
  static std::int64_t sum = 0;
  static torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I64);
  static torii_request* made = nullptr;
  static torii_team* part = nullptr;
  static torii_choice choice = {};
  static std::uint64_t destination = 0;
  choice.size = sizeof(choice);
  const auto [context, team] = std::pair(things.context, things.team);
  return {
      refused([=] { return torii_allreduce(team, &value, &sum, 1, TORII_I64, TORII_SUM); }),
      refused([=] { return torii_barrier(team); }),
      refused([=] { return torii_broadcast(team, &value, 1, TORII_I64, 0); }),
      refused([=] { return torii_run(team, &call); }),
      refused([=] { return torii_start(team, &call, &made); }),
      refused([=] { return torii_prepare(team, &call, &made); }),
      refused([=] { return torii_send(team, &value, 1, TORII_I64, 0, 0); }),
      refused([=] { return torii_recv(team, &value, 1, TORII_I64, 0, 0, nullptr); }),
      refused([=] { return torii_start_send(team, &value, 1, TORII_I64, 0, 0, &made); }),
      refused([=] { return torii_transpose(team, &value, &sum, 1, 1, sizeof(value)); }),
      refused([=] { return torii_permute(team, &value, 1, &destination, &sum, 1, sizeof(value)); }),
      refused([=] { return torii_group_begin(team); }),
      refused([=] { return torii_choose(team, &call, &choice); }),
      refused([=] { return torii_team_split(team, 0, 0, nullptr, &part); }),
      refused([=] { return torii_team_survivors(team, nullptr, &part); }),
      refused([=] { return torii_team_create(context, nullptr, &part); }),
      refused([=] { return torii_team_destroy(team); }),
      refused([=] { return torii_team_abort(team, "of a child"); }),
      refused([=] { return torii_team_health(team); }),
      refused([=] { return torii_context_destroy(context); }),
      refused([=] { return torii_progress(context, nullptr); }),
      [=] { return torii_team_lost(team, nullptr, 0) == -1; },
      [=] { return torii_team_absent(team, nullptr, 0) == -1; },
      [=] { return torii_most_in_flight(team) == -1; },
      [=] { return torii_engine_bytes(context, nullptr, 0) == 0; },
      [=] {
        torii_counters counters{};
        counters.size = sizeof(counters);
        return torii_context_counters(context, &counters) == TORII_INVALID_ARGUMENT;
      },
      [=] { return torii_context_event_fd(context) == -1; },
      // Refused for another reason, which is not counted in the parent's memory.
      [=] { return torii_run(team, nullptr) == TORII_INVALID_ARGUMENT; },
      [=] { return torii_refuse(team, "a binding's reason") == TORII_INVALID_ARGUMENT; },
      [=] { return torii_start(team, &call, nullptr) == TORII_INVALID_ARGUMENT; },
  };
}

/// The number of the first call in a child that was not refused, + 1; 0: all were. -1: the child came to no end.
int first_unrefused(const Calls& calls) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i]()) _exit(static_cast<int>(i) + 1);
    }
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkedChild, IsRefusedWhileAnotherThreadIsInside) {
  for (const std::uint64_t many_callers : {0, 1}) {
    torii_context_options options = {};
    options.size = sizeof(options);
    options.settings = "ARENA=256M";
    Things things = {};
    ASSERT_EQ(torii_context_create(&options, &things.context), TORII_OK) << torii_last_error();
    torii_team_options team_options = {};
    team_options.size = sizeof(team_options);
    team_options.many_callers = many_callers;
    ASSERT_EQ(torii_team_create(things.context, &team_options, &things.team), TORII_OK) << torii_last_error();
    std::int64_t value = 1;
    std::int64_t sum = 0;
    const torii_call call = make_call(TORII_ALLREDUCE, &value, &sum, 1, TORII_I64);
    ASSERT_EQ(torii_prepare(things.team, &call, &things.persistent), TORII_OK) << torii_last_error();
    for (int i = 0; i < 4; ++i) ASSERT_EQ(torii_run(things.team, &call), TORII_OK) << torii_last_error();
    // Receives that nobody sends to stay open, so that the team is in the background.
    torii_request* open = nullptr;
    std::int64_t never = 0;
    ASSERT_EQ(torii_start_recv(things.team, &never, 1, TORII_I64, 0, 9, nullptr, &open), TORII_OK)
        << torii_last_error();
    sum = 0;
    ASSERT_EQ(torii_start(things.team, &call, &things.ended), TORII_OK) << torii_last_error();
    while (sum != 1) ASSERT_EQ(torii_progress(things.context, nullptr), TORII_OK);
    {
      const Holder holder(things.ended);
      EXPECT_EQ(first_unrefused(calls_of(things)), 0) << "many_callers " << many_callers;
      EXPECT_EQ(first_unrefused(calls_of_requests(things)), 0) << "many_callers " << many_callers;
    }
    EXPECT_EQ(torii_wait(&things.ended), TORII_OK) << "the parent goes on: " << torii_last_error();
    int is_cancelled = 0;
    EXPECT_EQ(torii_request_cancel(&open, &is_cancelled), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_run(things.team, &call), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_request_free(&things.persistent), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_team_destroy(things.team), TORII_OK) << torii_last_error();
    EXPECT_EQ(torii_context_destroy(things.context), TORII_OK) << torii_last_error();
  }
}

}  // namespace
}  // namespace torii::tests
