// SPDX-License-Identifier: Apache-2.0
// The program that test_refusing starts as ranks: a team of survivors that one member can not make, and that member
// dies.
// usage: refusing_rank RANK DELAY_US NTH. RANK has no memory for it: its NTH allocation of the heap fails, or, if NTH
// is 0, it finds none in its arena. RANK is killed after DELAY_US, or when the call returns. With TORII_TEST_PER_NODE=N
// every N ranks play a node.
#include <torii/torii.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include "tests/support/process.hpp"

namespace {

/// Allocations of this thread until one fails; 0: none does.
thread_local int allocations_left = 0;

void* allocate(std::size_t bytes) {
  if (allocations_left != 0 && --allocations_left == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using torii::tests::now_s;

void die() { kill(getpid(), SIGKILL); }

void fill_arena(torii_context* context) {
  void* memory = nullptr;
  for (const int kib : {8 << 10, 64}) {
    while (torii_allocate(context, static_cast<std::size_t>(kib) << 10, &memory) == TORII_OK) {
    }
  }
}

void say(int rank, const char* what, torii_status status, double begun_s) {
  // One write per line, so that the lines of ranks on one pipe stay whole.
  char line[1024];
  const int bytes = std::snprintf(line, sizeof(line), "rank %d after %.3f s: %s: %s: %s\n", rank, now_s() - begun_s,
                                  what, torii_status_name(status), status == TORII_OK ? "" : torii_last_error());
  if (write(STDOUT_FILENO, line, static_cast<std::size_t>(bytes)) < 0) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int chosen = std::atoi(argv[1]);
  const int delay_us = std::atoi(argv[2]);
  const int nth = std::atoi(argv[3]);
  const char* const per_node = std::getenv("TORII_TEST_PER_NODE");
  const char* const own_rank = std::getenv("TORII_RANK");
  if (per_node != nullptr && own_rank != nullptr) {
    setenv("TORII_NODE", std::to_string(std::atoi(own_rank) / std::atoi(per_node)).c_str(), 1);
  }
  torii_context* context = nullptr;
  torii_team* team = nullptr;
  if (torii_context_create(nullptr, &context) != TORII_OK || torii_team_create(context, nullptr, &team) != TORII_OK) {
    std::puts(torii_last_error());
    return 3;
  }
  const int rank = torii_team_rank(team);
  if (rank == chosen && nth == 0) fill_arena(context);
  if (rank == chosen) (void)torii_team_abort(team, "to see who survives");
  while (torii_barrier(team) == TORII_OK) {
  }
  std::thread killer;
  if (rank == chosen) {
    killer = std::thread([delay_us] {
      usleep(static_cast<useconds_t>(delay_us));
      die();
    });
    allocations_left = nth;
  }
  const double begun_s = now_s();
  torii_team* survivors = nullptr;
  const torii_status status = torii_team_survivors(team, nullptr, &survivors);
  if (rank == chosen) die();
  say(rank, "survivors", status, begun_s);
  if (status != TORII_OK) return 0;
  torii_status called = TORII_OK;
  for (int call = 0; call < 100 && called == TORII_OK; ++call) called = torii_barrier(survivors);
  say(rank, "calls", called, begun_s);
  return 0;
}
