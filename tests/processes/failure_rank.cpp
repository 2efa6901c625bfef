// SPDX-License-Identifier: Apache-2.0
// The program that test_failures starts as ranks: calls that one rank spoils, and what the others then see.
// usage: failure_rank MODE [RANK [DELAY_US [COUNT]]]. RANK is the one that misbehaves, DELAY_US when. With
// TORII_TEST_PER_NODE=N every N ranks play a node.
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <torii/torii.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.hpp"

namespace {

using torii::tests::now_s;

std::atomic<bool> was_told_to_end = false;

void say(const std::string& line) {
  // One write per line, so that the lines of ranks on one pipe stay whole.
  const std::string whole = line + "\n";
  if (write(STDOUT_FILENO, whole.data(), whole.size()) < 0) std::abort();
}

struct Arguments {
  std::string mode;
  int rank = 0;
  int delay_us = 0;
  std::size_t count = 1000;
};

/// A rank of the job with its world team.
class Rank {
 public:
  explicit Rank(const Arguments& arguments)
      : arguments_(arguments), team_(context_.team()), input_(arguments.count, team_.rank()) {
    result_.resize(input_.size());
  }

  int run() {
    if (arguments_.mode == "work") return work();
    if (arguments_.mode == "loop") return loop();
    if (arguments_.mode == "absent") return absent();
    if (arguments_.mode == "requests") return requests();
    if (arguments_.mode == "recycle") return recycle();
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
  bool chosen() const { return team_.rank() == arguments_.rank; }

  /// Runs `action` on the chosen rank, beside its calls, when the delay is over.
  std::thread later(std::function<void()> action) const {
    if (!chosen()) return {};
    return std::thread([action = std::move(action), delay_us = arguments_.delay_us] {
      usleep(static_cast<useconds_t>(delay_us));
      action();
    });
  }
  static void say_event() {
    char line[64];
    std::snprintf(line, sizeof(line), "event at %.6f", now_s());
    say(line);
  }
  static void die() {
    say_event();
    kill(getpid(), SIGKILL);
  }

  torii_call allreduce_call() {
    torii_call call = {};
    call.size = sizeof(call);
    call.collective = TORII_ALLREDUCE;
    call.input = input_.data();
    call.result = result_.data();
    call.count = input_.size();
    call.type = TORII_I64;
    call.op = TORII_SUM;
    return call;
  }

  void say_status(torii_status status) const {
    char time[32];
    std::snprintf(time, sizeof(time), "%.6f", now_s());
    say("rank " + std::to_string(team_.rank()) + " at " + time + " got " + torii_status_name(status) + ": " +
        torii_last_error());
  }

  /// Calls until one fails, and says how.
  torii_status call_until_failure() {
    torii_status status = TORII_OK;
    torii_call call = allreduce_call();
    if (std::getenv("FAILURE_ALLTOALL") != nullptr) {
      call.collective = TORII_ALLTOALL;
      call.count /= static_cast<std::size_t>(team_.ranks());
    }
    while (status == TORII_OK) status = team_.run(call);
    say_status(status);
    return status;
  }

  /// After the failure: every kind of call says poisoned.
  bool is_poisoned() {
    const torii_call call = allreduce_call();
    torii_request* request = nullptr;
    torii_team* part = nullptr;
    const bool poisoned = team_.run(call) == TORII_POISONED && team_.barrier() == TORII_POISONED &&
                          torii_start(team_.handle(), &call, &request) == TORII_POISONED && request == nullptr &&
                          torii_prepare(team_.handle(), &call, &request) == TORII_POISONED && request == nullptr &&
                          torii_team_split(team_.handle(), 0, 0, nullptr, &part) == TORII_POISONED && part == nullptr;
    const std::string text = torii_last_error();
    return poisoned && text.find("poisoned: ") != std::string::npos && text.find("survivors") != std::string::npos;
  }

  /// A team of those that live, and calls on it whose results are checked.
  bool survivors_work(int expected_ranks) {
    torii::Team survivors = team_.survivors();
    if (survivors.ranks() != expected_ranks) {
      say("the team of survivors has " + std::to_string(survivors.ranks()) + " ranks");
      return false;
    }
    for (int call = 0; call < 20; ++call) {
      std::vector<std::int64_t> data(call % 2 == 0 ? 3 : 20'000, survivors.rank() + call);
      if (survivors.allreduce(std::span(data)) != TORII_OK) {
        say_status(TORII_INTERNAL);
        return false;
      }
      const std::int64_t sum = expected_ranks * (expected_ranks - 1) / 2 + expected_ranks * call;
      for (const std::int64_t value : data) {
        if (value != sum) return false;
      }
    }
    torii_team* again = nullptr;
    return torii_team_survivors(team_.handle(), nullptr, &again) == TORII_INVALID_ARGUMENT;
  }

  /// The chosen rank wants another algorithm for the survivors than the others.
  int survivors_differ() {
    torii_team_options options = {};
    options.size = sizeof(options);
    options.algorithm = chosen() ? "ring" : "node";
    torii_team* survivors = nullptr;
    const torii_status status = torii_team_survivors(team_.handle(), &options, &survivors);
    say_status(status);
    return status == TORII_MISMATCH && survivors == nullptr ? 0 : 1;
  }

  int end(int expected_survivors) {
    if (!is_poisoned()) {
      say("not poisoned: " + std::string(torii_last_error()));
      return 1;
    }
    if (!survivors_work(expected_survivors)) return 1;
    say("survivors work");
    return 0;
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
      for (auto at = started.rbegin(); at != started.rend(); ++at) worst = worse(worst, torii_wait(*at));
      if (restarted) worst = worse(worst, torii_wait(persistent));
    }
    if (torii_request_free(persistent) != TORII_OK) return 1;
    return worst == TORII_PEER_LOST ? end(team_.ranks() - 1) : 1;
  }
  /// The first bad status is said; all bad ones must be equal.
  torii_status worse(torii_status before, torii_status now) {
    if (now == TORII_OK) return before;
    if (before == TORII_OK) say_status(now);
    if (before != TORII_OK && before != now) say("statuses differ");
    return before == TORII_OK || before == now ? now : TORII_INTERNAL;
  }

  /// The TCP stream of this process that has carried most, or -1.
  static int busiest_stream() {
    constexpr int kDescriptors = 1024;
    constexpr int kEstablished = 1;
    int busiest = -1;
    std::uint64_t most = 0;
    for (int descriptor = 3; descriptor < kDescriptors; ++descriptor) {
      tcp_info info = {};
      socklen_t length = sizeof(info);
      if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) continue;
      if (info.tcpi_state != kEstablished || info.tcpi_bytes_acked + info.tcpi_bytes_received <= most) continue;
      most = info.tcpi_bytes_acked + info.tcpi_bytes_received;
      busiest = descriptor;
    }
    return busiest;
  }
  static void cut_busiest_stream() {
    say_event();
    if (shutdown(busiest_stream(), SHUT_RDWR) != 0) say("there is no stream to cut");
  }
  /// Nothing comes through the stream any more, answers to what it has sent included, and nobody is told: a cut cable.
  static void deafen_busiest_stream() {
    sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const sock_fprog filter = {1, drop_all};
    say_event();
    if (setsockopt(busiest_stream(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) != 0) {
      say("there is no stream to deafen");
    }
  }

  /// A stream of the chosen rank is lost while both its ends live. Either the calls go on for a while, or they end, and
  /// the survivors, which are all, go on.
  int lose_stream(void (*how)()) {
    std::thread spoiler = later(how);
    const double end_s = now_s() + 1e-6 * arguments_.delay_us + 0.5;
    torii_status status = TORII_OK;
    for (bool is_last = false; status == TORII_OK && !is_last;) {
      input_[0] = now_s() > end_s ? 1 : 0;
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

  /// The chosen rank dies while plans come and go: with slots as large as the test sets them, few fit into the staging.
  int recycle() {
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
      for (torii_request* request : started) worst = worse(worst, torii_wait(request));
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

  torii_status run_persistent(const torii_call& call) {
    torii_request* request = nullptr;
    torii_status status = torii_prepare(team_.handle(), &call, &request);
    if (status == TORII_OK) status = torii_restart(request);
    if (status == TORII_OK) status = torii_wait(request);
    // A rank may be through with its call before the others have seen what is wrong; its next call tells it.
    if (status == TORII_OK) status = team_.barrier();
    say_status(status);
    if (request != nullptr && torii_request_free(request) != TORII_OK) std::abort();
    return status;
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

  Arguments arguments_;
  torii::Context context_;
  torii::Team team_;
  std::vector<std::int64_t> input_;
  std::vector<std::int64_t> result_;
};

}  // namespace

int main(int argc, char** argv) {
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
