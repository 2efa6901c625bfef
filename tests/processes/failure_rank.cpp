// SPDX-License-Identifier: Apache-2.0
// The program that test_failures starts as ranks: calls that one rank spoils, and what the others then see.
// usage: failure_rank MODE [RANK [DELAY_US [COUNT]]]. RANK is the one that misbehaves, DELAY_US when. With
// TORII_TEST_PER_NODE=N every N ranks play a node.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/failure_calls.hpp"
#include "tests/support/process.hpp"

namespace torii::tests {
namespace {

std::atomic<bool> was_told_to_end = false;

/// One mode is one member.
class Rank : private FailureCalls {
 public:
  using FailureCalls::FailureCalls;

  int run() {
    if (arguments_.mode == "work") return work();
    if (arguments_.mode == "loop") return loop();
    if (arguments_.mode == "absent") return absent();
    if (arguments_.mode == "requests") return requests();
    if (arguments_.mode == "roots") return roots();
    if (arguments_.mode == "stall") return stall();
    if (arguments_.mode == "abort" || arguments_.mode == "options") return abort();
    if (arguments_.mode == "cut") return cut();
    if (arguments_.mode == "cancel") return cancel();
    if (arguments_.mode == "deafen") return lose_stream(deafen_busiest_stream);
    if (arguments_.mode == "break") return lose_stream(cut_busiest_stream);
    if (arguments_.mode == "late" || arguments_.mode == "late_persistent") return late();
    if (arguments_.mode == "persistent") return persistent_mismatch();
    return mismatch();
  }

 private:
  static void die() {
    say_event();
    leave_child();
    kill(getpid(), SIGKILL);
  }

  /// Nobody misbehaves, until the delay is over or rank 0 got SIGUSR1.
  int work() {
    const double end_s = now_s() + arguments_.delay_us * 1e-6;
    // Rank 0 counts itself in until then, so all see the end in the same call.
    for (bool goes_on = true; goes_on;) {
      std::vector<std::int64_t> data(1 + arguments_.count, team_.rank() + 1);
      data[0] = team_.rank() == 0 && now_s() < end_s && !was_told_to_end ? 1 : 0;
      if (team_.allreduce(std::span(data)) != TORII_OK) {
        say_status(TORII_INTERNAL);
        return 1;
      }
      for (std::size_t i = 1; i < data.size(); ++i) {
        if (data[i] != team_.ranks() * (team_.ranks() + 1) / 2) return 1;
      }
      goes_on = data[0] == 1;
    }
    say("rank " + std::to_string(team_.rank()) + " has worked");
    return 0;
  }

  int loop() {
    const std::thread killer = later(die);
    call_until_failure();
    return end(team_.ranks() - 1);
  }

  /// The chosen rank dies without having called; the others wait long enough to sleep.
  int absent() {
    if (team_.barrier() != TORII_OK) return 1;
    if (chosen()) {
      usleep(static_cast<useconds_t>(arguments_.delay_us));
      die();
    }
    call_until_failure();
    return end(team_.ranks() - 1);
  }

  /// The chosen rank dies with operations in flight: each request ends with the cause.
  int requests() {
    const std::thread killer = later(die);
    std::vector<std::vector<std::int64_t>> results(4, std::vector<std::int64_t>(input_.size()));
    torii_call call = allreduce_call();
    torii_request* persistent = nullptr;
    torii_status worst = torii_prepare(team_.handle(), &call, &persistent);
    if (worst != TORII_OK) say_status(worst);
    while (worst == TORII_OK) {
      std::vector<torii_request*> started;
      torii_status status = torii_restart(persistent);
      const bool restarted = status == TORII_OK;
      for (auto& result : results) {
        if (status != TORII_OK) break;
        torii_call one = allreduce_call();
        one.result = result.data();
        torii_request* request = nullptr;
        status = torii_start(team_.handle(), &one, &request);
        if (status == TORII_OK) started.push_back(request);
      }
      worst = status;
      if (worst != TORII_OK) say_status(worst);
      for (auto at = started.rbegin(); at != started.rend(); ++at) worst = worse(worst, torii_wait(&*at));
      if (restarted) worst = worse(worst, torii_wait(&persistent));
    }
    if (torii_request_free(&persistent) != TORII_OK) return 1;
    return worst == TORII_PEER_LOST ? end(team_.ranks() - 1) : 1;
  }
  /// A stream of the chosen rank is lost while both its ends live. Either the calls go on for a while, or they end, and
  /// the survivors, which are all, go on.
  int lose_stream(void (*how)()) {
    std::thread spoiler = later(how);
    const double end_s = now_s() + 1e-6 * arguments_.delay_us + 0.5;
    torii_status status = TORII_OK;
    double begin_s = 0;
    double least_s = 1e9;
    for (bool is_last = false; status == TORII_OK && !is_last;) {
      if (begin_s != 0) least_s = std::min(least_s, now_s() - begin_s);
      input_[0] = now_s() > end_s ? 1 : 0;
      begin_s = now_s();
      status = team_.run(allreduce_call());
      is_last = status == TORII_OK && result_[0] != 0;
    }
    if (spoiler.joinable()) spoiler.join();
    if (status == TORII_OK) status = team_.barrier();
    if (status == TORII_OK) {
      say("went on");
      return 0;
    }
    say_status(status);
    if (chosen()) say("a call took " + std::to_string(least_s) + " s");
    return end(team_.ranks());
  }

  /// A stream of the chosen rank breaks in the middle of a scatter, while both its ends live. Either all goes on, with
  /// the right data, for a while, or the calls end with an error.
  int cut() {
    std::thread cutter = later(cut_busiest_stream);
    const std::size_t block = input_.size() / static_cast<std::size_t>(team_.ranks());
    const double end_s = now_s() + 1e-6 * arguments_.delay_us + 0.3;
    torii_status status = TORII_OK;
    for (std::int64_t call = 1, last = 0; status == TORII_OK && last == 0; ++call) {
      // Negative numbers say that this call is the last one.
      const std::int64_t sign = now_s() > end_s ? -1 : 1;
      for (std::size_t i = 0; i < input_.size(); ++i)
        input_[i] = sign * (call * 1'000'000 + static_cast<std::int64_t>(i));
      status = torii_scatter(team_.handle(), input_.data(), result_.data(), block, TORII_I64, 0);
      for (std::size_t i = 0; status == TORII_OK && i < block; ++i) {
        const auto index = static_cast<std::int64_t>(block * static_cast<std::size_t>(team_.rank()) + i);
        if (std::abs(result_[i]) == call * 1'000'000 + index) continue;
        say("wrong data");
        return 1;
      }
      last = status == TORII_OK && result_[0] < 0 ? 1 : 0;
    }
    if (cutter.joinable()) cutter.join();
    // A rank may be through with its call before the others have failed in theirs.
    if (status == TORII_OK) status = team_.barrier();
    if (status == TORII_OK) {
      say("went on");
      return 0;
    }
    say_status(status);
    return is_poisoned() ? 0 : 1;
  }

  /// The chosen rank dies while broadcasts from all ranks are in flight.
  int roots() {
    const std::thread killer = later(die);
    torii_status worst = TORII_OK;
    while (worst == TORII_OK) {
      std::vector<torii_request*> started;
      for (int root = 0; root < team_.ranks() && worst == TORII_OK; ++root) {
        torii_call call = allreduce_call();
        call.collective = TORII_BROADCAST;
        call.root = root;
        torii_request* request = nullptr;
        const torii_status status = torii_start(team_.handle(), &call, &request);
        if (status == TORII_OK) started.push_back(request);
        worst = worse(worst, status);
      }
      for (torii_request*& request : started) worst = worse(worst, torii_wait(&request));
    }
    return worst == TORII_PEER_LOST ? end(team_.ranks() - 1) : 1;
  }

  /// The chosen rank stops. Rank 0 or 1 lets it go on when the deadline has come.
  int stall() {
    std::vector<std::int64_t> own = {getpid()};
    std::vector<std::int64_t> pids(static_cast<std::size_t>(team_.ranks()));
    if (torii_all_gather(team_.handle(), own.data(), pids.data(), 1, TORII_I64) != TORII_OK) return 1;
    std::thread stopper = later([] {
      say_event();
      kill(getpid(), SIGSTOP);
    });
    const torii_status status = call_until_failure();
    if (team_.rank() == (arguments_.rank == 0 ? 1 : 0)) {
      kill(static_cast<pid_t>(pids[static_cast<std::size_t>(arguments_.rank)]), SIGCONT);
    }
    if (stopper.joinable()) stopper.join();
    return status == TORII_TIMEOUT ? end(team_.ranks()) : 1;
  }

  int abort() {
    std::thread aborter = later([this] {
      say_event();
      if (torii_team_abort(team_.handle(), "enough is enough") != TORII_OK) std::abort();
    });
    const torii_status status = call_until_failure();
    if (aborter.joinable()) aborter.join();
    if (arguments_.mode == "options") return survivors_differ();
    return status == TORII_ABORTED ? end(team_.ranks()) : 1;
  }

  /// The chosen rank comes to the call long after the deadline of the others.
  int late() {
    if (team_.barrier() != TORII_OK) return 1;
    say_event();
    if (chosen()) usleep(static_cast<useconds_t>(arguments_.delay_us));
    torii_status status = TORII_OK;
    if (arguments_.mode == "late_persistent") {
      status = run_persistent(allreduce_call());
    } else {
      status = call_until_failure();
    }
    return status == TORII_TIMEOUT ? end(team_.ranks()) : 1;
  }

  /// The chosen rank prepares another operation than the others.
  int persistent_mismatch() {
    if (team_.barrier() != TORII_OK) return 1;
    torii_call call = allreduce_call();
    if (chosen()) call.op = TORII_MAX;
    say_event();
    return run_persistent(call) == TORII_MISMATCH ? end(team_.ranks()) : 1;
  }

  /// One good call, then one in which the chosen rank calls something else.
  int mismatch() {
    torii_call call = allreduce_call();
    if (arguments_.mode == "root") call.collective = TORII_REDUCE;
    torii_status status = team_.run(call);
    if (chosen()) {
      if (arguments_.mode == "count") call.count -= 1;
      if (arguments_.mode == "op") call.op = TORII_MAX;
      if (arguments_.mode == "type") call.type = TORII_U64;
      if (arguments_.mode == "root") call.root = 1;
      if (arguments_.mode == "collective") call.collective = TORII_BROADCAST;
      if (arguments_.mode == "barrier") call.collective = TORII_BARRIER;
      if (arguments_.mode == "nothing") call.count = 0;
    }
    say_event();
    // A rank that is late learns in the first call already that the others' second ones differ.
    if (status == TORII_OK) status = team_.run(call);
    // A rank may be through with its call before the others have seen that theirs differ; its next call tells it.
    if (status == TORII_OK) status = team_.barrier();
    say_status(status);
    return status == TORII_MISMATCH ? end(team_.ranks()) : 1;
  }

  /// A thread of the chosen rank is cancelled while it waits for the others, who are late.
  int cancel() {
    if (!chosen()) {
      usleep(static_cast<useconds_t>(arguments_.delay_us));
      return team_.barrier() == TORII_OK && team_.barrier() == TORII_OK ? 0 : 1;
    }
    struct Call {
      torii::Team& team;
      std::atomic<int> status = -1;
      static void* make(void* data) {
        Call& call = *static_cast<Call*>(data);
        call.status = call.team.barrier();
        pthread_testcancel();
        return nullptr;
      }
    } call{team_};
    pthread_t thread{};
    void* result = nullptr;
    if (pthread_create(&thread, nullptr, &Call::make, &call) != 0) return 1;
    usleep(static_cast<useconds_t>(arguments_.delay_us / 2));
    if (pthread_cancel(thread) != 0 || pthread_join(thread, &result) != 0) return 1;
    if (result == PTHREAD_CANCELED && call.status == TORII_OK) say("cancelled after the call");
    return team_.barrier() == TORII_OK ? 0 : 1;
  }
};

/// Continues in a child, the first process of a namespace whose members see none outside. Exits with 77 if that is not
/// allowed, otherwise with the child's code.
void enter_process_namespace() {
  if (unshare(CLONE_NEWPID) != 0) std::exit(77);
  const pid_t child = fork();
  if (child == 0) return;
  int status = 0;
  waitpid(child, &status, 0);
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/// The job meets without torii-run.
void meet_over_tcp(const char* rank, const char* port) {
  setenv("RANK", rank, 1);
  setenv("WORLD_SIZE", std::getenv("TORII_RANKS"), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", port, 1);
  unsetenv("TORII_JOB_FD");
}

}  // namespace
}  // namespace torii::tests

int main(int argc, char** argv) {
  using namespace torii::tests;
  std::signal(SIGUSR1, [](int) { was_told_to_end = true; });
  Arguments arguments;
  if (argc > 1) arguments.mode = argv[1];
  if (argc > 2) arguments.rank = std::atoi(argv[2]);
  if (argc > 3) arguments.delay_us = std::atoi(argv[3]);
  if (argc > 4) arguments.count = std::strtoul(argv[4], nullptr, 10);
  const char* const per_node = std::getenv("TORII_TEST_PER_NODE");
  const char* const rank = std::getenv("TORII_RANK");
  if (per_node != nullptr && rank != nullptr) {
    setenv("TORII_NODE", std::to_string(std::atoi(rank) / std::atoi(per_node)).c_str(), 1);
  }
  const char* const port = std::getenv("FAILURE_TCP_PORT");
  if (rank != nullptr && port != nullptr) meet_over_tcp(rank, port);
  if (rank != nullptr && std::getenv("FAILURE_NAMESPACES") != nullptr && std::atoi(rank) != arguments.rank) {
    enter_process_namespace();
  }
  // The chosen rank comes late to the job.
  const char* const late_us = std::getenv("FAILURE_LATE_US");
  const char* const own_rank = rank != nullptr ? rank : std::getenv("RANK");
  if (late_us != nullptr && own_rank != nullptr && std::atoi(own_rank) == arguments.rank) {
    usleep(static_cast<useconds_t>(std::atoi(late_us)));
  }
  try {
    return Rank(arguments).run();
  } catch (const std::exception& error) {
    say(std::string("failure_rank: ") + error.what());
    return 3;
  }
}
