// SPDX-License-Identifier: Apache-2.0
// The programs of litmus tests, instrumented as the code under test is.
#include "tests/exploration/litmus.hpp"

#include "runtime/base/platform.hpp"
#include "tests/exploration/station.hpp"

namespace torii::exploration {
namespace {

constexpr std::size_t kResultsOffset = 4096;

Litmus::Shared& shared() { return *reinterpret_cast<Litmus::Shared*>(Station::instance().ground(0)); }
std::uint64_t* results_of(int rank) {
  return reinterpret_cast<std::uint64_t*>(Station::instance().ground(rank) + kResultsOffset);
}

}  // namespace

void Litmus::set_up(Explorer& explorer) { Station::instance().set_up(explorer, ranks()); }

void Litmus::run(int rank) { programs_[static_cast<std::size_t>(rank)](shared(), results_of(rank)); }

std::string Litmus::at_end() {
  Results results;
  for (int rank = 0; rank < ranks(); ++rank) {
    results.insert(results.end(), results_of(rank), results_of(rank) + kResults);
  }
  seen_.insert(results);
  return {};
}

namespace litmus {

using Shared = Litmus::Shared;

void store_data_then_x_release(Shared& at, std::uint64_t*) {
  at.data = 7;
  at.x.store(1, kRelease);
}
void store_data_then_x_relaxed(Shared& at, std::uint64_t*) {
  at.data = 7;
  at.x.store(1, kRelaxed);
}
void store_data_fence_x(Shared& at, std::uint64_t*) {
  at.data = 7;
  std::atomic_thread_fence(kRelease);
  at.x.store(1, kRelaxed);
}
void load_x_acquire_then_data(Shared& at, std::uint64_t* results) {
  if ((results[0] = at.x.load(kAcquire)) != 0) results[1] = at.data;
}
void load_x_fence_then_data(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  std::atomic_thread_fence(kAcquire);
  if (results[0] != 0) results[1] = at.data;
}
void add_to_x_relaxed(Shared& at, std::uint64_t*) { at.x.fetch_add(1, kRelaxed); }
void load_x_acquire_as_2_then_data(Shared& at, std::uint64_t* results) {
  if ((results[0] = at.x.load(kAcquire)) == 2) results[1] = at.data;
}
void store_y_then_x_relaxed(Shared& at, std::uint64_t*) {
  at.y.store(1, kRelaxed);
  at.x.store(1, kRelaxed);
}
void store_y_then_x_release(Shared& at, std::uint64_t*) {
  at.y.store(1, kRelaxed);
  at.x.store(1, kRelease);
}
void store_x_then_y_release(Shared& at, std::uint64_t*) {
  at.x.store(1, kRelaxed);
  at.y.store(1, kRelease);
}
void load_x_then_y_relaxed(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  results[1] = at.y.load(kRelaxed);
}
void load_x_acquire_then_y(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kAcquire);
  results[1] = at.y.load(kRelaxed);
}
void store_x_load_y(Shared& at, std::uint64_t* results) {
  at.x.store(1, kRelease);
  results[0] = at.y.load(kAcquire);
}
void store_y_load_x(Shared& at, std::uint64_t* results) {
  at.y.store(1, kRelease);
  results[0] = at.x.load(kAcquire);
}
void store_x_load_y_sequential(Shared& at, std::uint64_t* results) {
  at.x.store(1, kSequential);
  results[0] = at.y.load(kSequential);
}
void store_y_load_x_sequential(Shared& at, std::uint64_t* results) {
  at.y.store(1, kSequential);
  results[0] = at.x.load(kSequential);
}
void store_x_fence_load_y(Shared& at, std::uint64_t* results) {
  at.x.store(1, kRelaxed);
  std::atomic_thread_fence(kSequential);
  results[0] = at.y.load(kRelaxed);
}
void store_y_fence_load_x(Shared& at, std::uint64_t* results) {
  at.y.store(1, kRelaxed);
  std::atomic_thread_fence(kSequential);
  results[0] = at.x.load(kRelaxed);
}
void store_y_fence_of_all_load_x(Shared& at, std::uint64_t* results) {
  at.y.store(1, kRelaxed);
  explorer().fence_all();
  results[0] = at.x.load(kRelaxed);
}
void add_to_y_fence_of_all_load_x_twice(Shared& at, std::uint64_t* results) {
  at.y.fetch_add(1, kRelaxed);
  explorer().fence_all();
  results[0] = at.x.load(kRelaxed);
  results[1] = at.x.load(kRelaxed);
}
void add_to_y_and_subtract(Shared& at, std::uint64_t*) {
  at.y.fetch_add(1, kRelaxed);
  at.y.fetch_sub(1, kRelaxed);
}
void load_x_store_y(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  at.y.store(1, kRelaxed);
}
void load_y_store_x(Shared& at, std::uint64_t* results) {
  results[0] = at.y.load(kRelaxed);
  at.x.store(1, kRelaxed);
}
void store_x_1_then_2(Shared& at, std::uint64_t*) {
  at.x.store(1, kRelaxed);
  at.x.store(2, kRelaxed);
}
void load_x_twice(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  results[1] = at.x.load(kRelaxed);
}
void store_x(Shared& at, std::uint64_t*) { at.x.store(1, kRelaxed); }
void pass_x_on_to_y_relaxed(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  at.y.store(results[0], kRelaxed);
}
void pass_x_on_to_y(Shared& at, std::uint64_t* results) {
  results[0] = at.x.load(kRelaxed);
  at.y.store(results[0], kRelease);
}
void load_y_acquire_then_x(Shared& at, std::uint64_t* results) {
  results[0] = at.y.load(kAcquire);
  results[1] = at.x.load(kRelaxed);
}
void add_to_x(Shared& at, std::uint64_t* results) { results[0] = at.x.fetch_add(1, kRelaxed); }
void await_x_looking_at_y(Shared& at, std::uint64_t*) {
  while (at.x.load(kRelaxed) == 0) {
    (void)at.y.load(kAcquire);
    platform().yield();
  }
}
void claim_x(Shared& at, std::uint64_t* results) {
  std::uint64_t expected = 0;
  results[0] = at.x.compare_exchange_strong(expected, 5, std::memory_order_acq_rel) ? 1 : 0;
}

}  // namespace litmus
}  // namespace torii::exploration
