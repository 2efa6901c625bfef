// SPDX-License-Identifier: Apache-2.0
// The program that test_left_out starts. Of two ranks, rank 1 is stopped while it stores into a vector of rank 0, which
// leaves it out, gives the vector back, takes new memory and lets rank 1 go on: no byte may change. "renews": before
// that, rank 0 makes another context with this memory, without rank 1. Of three ranks, rank 2 is stopped while it asks
// for survivors, and the others ask again and again.
// usage: left_out_rank allocated|adopted dies|departs|renews
//        left_out_rank asks
#include <unistd.h>
#include <torii/torii.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/process.hpp"

namespace {

constexpr std::size_t kBytes = std::size_t{96} << 20;
constexpr unsigned char kSent = 7;
constexpr unsigned char kOwn = 9;

/// Memory that peers reach in place, of one kind or the other.
class Vector {
 public:
  Vector(const torii::Context& context, bool adopts) {
    // Adopted memory is always the same, so that only its place in the arena can change.
    static void* const own = std::aligned_alloc(4096, kBytes);
    void* memory = own;
    if (adopts) {
      torii::check(torii_register(context.handle(), memory, kBytes, TORII_REGISTER_ADOPT, &region_));
    } else {
      torii::check(torii_allocate(context.handle(), kBytes, &memory));
    }
    data_ = static_cast<unsigned char*>(memory);
  }
  void give_back(const torii::Context& context) {
    torii::check(region_ != nullptr ? torii_deregister(context.handle(), region_)
                                    : torii_free(context.handle(), data_));
  }
  unsigned char* data() const { return data_; }
  std::size_t count(unsigned char value) const {
    return static_cast<std::size_t>(std::count(data_, data_ + kBytes, value));
  }

 private:
  unsigned char* data_ = nullptr;
  torii_region* region_ = nullptr;
};

torii_status broadcast(torii::Team& team, unsigned char* data) {
  return torii_broadcast(team.handle(), data, kBytes, TORII_U8, 1);
}

/// The signal by which rank 1 says that it has learned of it.
sigset_t learned() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  return signals;
}

/// Rank 1: sends until it is stopped in the middle, and then learns that it was left out.
int send(torii::Context& context, torii::Team& whole, torii::Team& team, pid_t peer, bool adopts, bool departs) {
  const Vector vector(context, adopts);
  std::fill_n(vector.data(), kBytes, kSent);
  torii::check(whole.barrier());
  whole = torii::Team(nullptr);
  torii_status status = TORII_OK;
  while (status == TORII_OK) {
    if ((status = team.barrier()) == TORII_OK) status = broadcast(team, vector.data());
  }
  try {
    (void)team.survivors();
  } catch (const torii::Failure& failure) {
    std::printf("rank 1 got %s\n", torii_status_name(failure.status()));
    std::fflush(stdout);
  }
  kill(peer, SIGUSR1);
  if (departs) team = torii::Team(nullptr);
  pause();  // rank 0 ends this process
  return 1;
}

/// Stops the process when something has come to the vector, but not all of it.
void stop_within(const unsigned char* data, pid_t peer, const std::atomic<bool>& is_over) {
  const auto has_come = [&](std::size_t at) { return static_cast<const volatile unsigned char*>(data)[at] == kSent; };
  while (!has_come(kBytes / 8) && !is_over) {
  }
  if (!is_over) kill(peer, SIGSTOP);
}

/// Whether the arena has room for one vector more.
bool has_room(torii::Context& context, bool adopts) {
  static void* const other = std::aligned_alloc(4096, kBytes);
  void* memory = nullptr;
  torii_region* region = nullptr;
  if (adopts) {
    if (torii_register(context.handle(), other, kBytes, TORII_REGISTER_ADOPT, &region) != TORII_OK) return false;
    torii::check(torii_deregister(context.handle(), region));
    return true;
  }
  if (torii_allocate(context.handle(), kBytes, &memory) != TORII_OK) return false;
  torii::check(torii_free(context.handle(), memory));
  return true;
}

/// A context of this rank alone, with the memory of another one, which ends.
torii::Context renewed(torii::Context context) {
  torii_context_options options = {};
  options.size = sizeof(options);
  options.ranks = 1;
  options.exchange = [](const void* mine, void* all, std::size_t bytes, void*) {
    std::memcpy(all, mine, bytes);
    return 0;
  };
  options.memory_of = context.handle();
  return torii::Context(&options);
}

int receive(torii::Context& context, torii::Team& whole, torii::Team& team, pid_t peer, bool adopts,
            const std::string& end) {
  Vector vector(context, adopts);
  std::fill_n(vector.data(), kBytes, 0);  // the first touch of so many pages takes its time, on both ranks
  torii::check(whole.barrier());
  whole = torii::Team(nullptr);
  torii_status status = TORII_OK;
  for (int round = 0; status == TORII_OK; ++round) {
    if (round == 50) return 1;
    std::fill_n(vector.data(), kBytes, 0);
    std::atomic<bool> is_over = false;
    torii::check(team.barrier());
    std::thread watcher([&] { stop_within(vector.data(), peer, is_over); });
    status = broadcast(team, vector.data());
    is_over = true;
    watcher.join();
    if (status == TORII_OK) kill(peer, SIGCONT);
  }
  std::printf("rank 0 got %s when %d%% had come\n", torii_status_name(status),
              static_cast<int>(vector.count(kSent) / (kBytes / 100)));
  team = team.survivors({1});
  if (end == "renews") {
    team = torii::Team(nullptr);
    context = renewed(std::move(context));
    team = context.team();
  }
  vector.give_back(context);
  vector = Vector(context, adopts);
  std::fill_n(vector.data(), kBytes, kOwn);
  kill(peer, SIGCONT);
  const sigset_t signals = learned();
  const timespec most = {10, 0};
  sigtimedwait(&signals, nullptr, &most);
  const std::size_t changed = kBytes - vector.count(kOwn);
  std::printf("%zu bytes have changed\n", changed);
  if (end != "departs") {
    std::printf("the memory is %s\n", has_room(context, adopts) ? "used again" : "set aside");
    kill(peer, SIGKILL);
  }
  bool is_there = false;
  for (int look = 0; look < 250 && !is_there; ++look) {
    usleep(20'000);
    is_there = has_room(context, adopts);
  }
  std::printf("the memory is %s\n", is_there ? "there again" : "lost");
  std::fflush(stdout);
  kill(peer, SIGKILL);
  return changed == 0 && team.barrier() == TORII_OK ? 0 : 1;
}

torii_status ask(const torii::Team& team, const std::vector<int>& without) {
  try {
    (void)team.survivors(without);
  } catch (const torii::Failure& failure) {
    std::printf("%s\n", failure.what());
    return failure.status();
  }
  return TORII_OK;
}

/// Three ranks. The data of a round are overwritten two rounds later, whoever was stopped in it.
int ask_again(torii::Team& team, pid_t last) {
  if (team.rank() == 0) torii::check(torii_team_abort(team.handle(), "enough"));
  while (team.barrier() == TORII_OK) {
  }
  if (team.rank() == 2) {
    std::printf("rank 2 got %s\n", torii_status_name(ask(team, {})));
    return 0;
  }
  usleep(200'000);
  if (team.rank() == 0) kill(last, SIGSTOP);
  usleep(100'000);
  if (ask(team, {}) != TORII_TIMEOUT || team.absent() != std::vector<int>{2}) return 1;
  if (ask(team, {team.rank() == 0 ? 2 : 7}) != TORII_INVALID_ARGUMENT) return 1;
  torii::Team made = team.survivors({2});
  if (made.ranks() != 2 || made.barrier() != TORII_OK) return 1;
  std::printf("rank %d has a team\n", team.rank());
  if (team.rank() == 0) kill(last, SIGCONT);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const bool adopts = argv[1] == std::string("adopted");
  const std::string end = argc < 3 ? "" : argv[2];
  try {
    const sigset_t signals = learned();
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    torii::Context context;
    torii::Team whole = context.team();
    std::int64_t own = getpid();
    std::vector<std::int64_t> pids(static_cast<std::size_t>(context.ranks()));
    torii::check(torii_all_gather(whole.handle(), &own, pids.data(), 1, TORII_I64));
    torii_team_options options = {};
    options.size = sizeof(options);
    options.algorithm = "binomial";  // the sender stores into the receiver's vector
    // Only the wait for a stopped rank is to end soon: a busy machine may hold up each rank for a second.
    if (whole.rank() == 0) options.timeout_seconds = 1;
    torii::Team team = whole.split(0, 0, &options);
    const auto last = static_cast<pid_t>(pids.back());
    if (argv[1] == std::string("asks")) {
      whole = torii::Team(nullptr);
      return ask_again(team, last);
    }
    return team.rank() == 1 ? send(context, whole, team, static_cast<pid_t>(pids.front()), adopts, end == "departs")
                            : receive(context, whole, team, last, adopts, end);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "left_out_rank: %s\n", error.what());
    return 3;
  }
}
