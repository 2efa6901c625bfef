// SPDX-License-Identifier: Apache-2.0
// A few loads and stores by two or three ranks, and all results that they can have: the tests by which memory models
// are told apart.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/exploration/explorer.hpp"

namespace torii::exploration {

class Litmus final : public World {
 public:
  static constexpr std::size_t kResults = 2;  ///< of each rank
  struct Shared {
    std::atomic<std::uint64_t> x;
    std::atomic<std::uint64_t> y;
    std::uint64_t data;
  };
  using Program = void (*)(Shared& shared, std::uint64_t* results);
  using Results = std::vector<std::uint64_t>;

  explicit Litmus(std::vector<Program> programs) : programs_(std::move(programs)) {}
  int ranks() const override { return static_cast<int>(programs_.size()); }
  void set_up(Explorer& explorer) override;
  void run(int rank) override;
  std::string at_end() override;
  /// The results of all executions so far. One result has the values of all ranks, one after the other.
  const std::set<Results>& seen() const noexcept { return seen_; }

 private:
  std::vector<Program> programs_;
  std::set<Results> seen_;
};

namespace litmus {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSequential = std::memory_order_seq_cst;

// Programs of ranks, by what they do: stores store 1, loads go into the next result.
void store_data_then_x_release(Litmus::Shared& shared, std::uint64_t* results);
void store_data_then_x_relaxed(Litmus::Shared& shared, std::uint64_t* results);
void store_data_fence_x(Litmus::Shared& shared, std::uint64_t* results);
void load_x_acquire_then_data(Litmus::Shared& shared, std::uint64_t* results);
void load_x_fence_then_data(Litmus::Shared& shared, std::uint64_t* results);
void add_to_x_relaxed(Litmus::Shared& shared, std::uint64_t* results);
void load_x_acquire_as_2_then_data(Litmus::Shared& shared, std::uint64_t* results);
void store_y_then_x_relaxed(Litmus::Shared& shared, std::uint64_t* results);
void store_y_then_x_release(Litmus::Shared& shared, std::uint64_t* results);
void store_x_then_y_release(Litmus::Shared& shared, std::uint64_t* results);
void load_x_then_y_relaxed(Litmus::Shared& shared, std::uint64_t* results);
void load_x_acquire_then_y(Litmus::Shared& shared, std::uint64_t* results);
void store_x_load_y(Litmus::Shared& shared, std::uint64_t* results);
void store_y_load_x(Litmus::Shared& shared, std::uint64_t* results);
void store_x_load_y_sequential(Litmus::Shared& shared, std::uint64_t* results);
void store_y_load_x_sequential(Litmus::Shared& shared, std::uint64_t* results);
void store_x_fence_load_y(Litmus::Shared& shared, std::uint64_t* results);
void store_y_fence_load_x(Litmus::Shared& shared, std::uint64_t* results);
void store_y_fence_of_all_load_x(Litmus::Shared& shared, std::uint64_t* results);
void add_to_y_fence_of_all_load_x_twice(Litmus::Shared& shared, std::uint64_t* results);
void add_to_y_and_subtract(Litmus::Shared& shared, std::uint64_t* results);
void load_x_store_y(Litmus::Shared& shared, std::uint64_t* results);
void load_y_store_x(Litmus::Shared& shared, std::uint64_t* results);
void store_x_1_then_2(Litmus::Shared& shared, std::uint64_t* results);
void load_x_twice(Litmus::Shared& shared, std::uint64_t* results);
void store_x(Litmus::Shared& shared, std::uint64_t* results);
void pass_x_on_to_y_relaxed(Litmus::Shared& shared, std::uint64_t* results);
void pass_x_on_to_y(Litmus::Shared& shared, std::uint64_t* results);
void load_y_acquire_then_x(Litmus::Shared& shared, std::uint64_t* results);
void add_to_x(Litmus::Shared& shared, std::uint64_t* results);
void claim_x(Litmus::Shared& shared, std::uint64_t* results);
/// Looks at x and y in turn until x is there.
void await_x_looking_at_y(Litmus::Shared& shared, std::uint64_t* results);

}  // namespace litmus
}  // namespace torii::exploration
