// SPDX-License-Identifier: Apache-2.0
// The exchange of threads, and the loop that starts them.
#include "tests/conformance/thread_team.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace torii::tests {
namespace {

/// One all-gather at a time: everybody writes, everybody reads, then the next may begin.
class Board {
 public:
  explicit Board(int ranks) : barrier_(ranks) {}
  void gather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (rank == 0) bytes_.resize(bytes * ranks());
    barrier_.arrive_and_wait();
    std::memcpy(bytes_.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
    barrier_.arrive_and_wait();
    std::memcpy(all, bytes_.data(), bytes_.size());
    barrier_.arrive_and_wait();
  }
  void set_ranks(std::size_t ranks) { ranks_ = ranks; }

 private:
  std::size_t ranks() const { return ranks_; }
  std::barrier<> barrier_;
  std::size_t ranks_ = 1;
  std::vector<std::byte> bytes_;
};

struct Seat {
  Board* board;
  int rank;
};

int exchange(const void* mine, void* all, std::size_t bytes, void* data) {
  const Seat& seat = *static_cast<const Seat*>(data);
  seat.board->gather(seat.rank, mine, all, bytes);
  return 0;
}

const char* text_or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

void run_rank(const ThreadTeam& options, Seat seat, std::barrier<>& end,
              const std::function<void(torii_context*, torii_team*)>& body) {
  torii_context_options context_options = {};
  context_options.size = sizeof(context_options);
  context_options.rank = seat.rank;
  context_options.ranks = options.ranks;
  context_options.exchange = exchange;
  context_options.exchange_data = &seat;
  std::string settings = options.settings;
  if (!options.nodes.empty()) {
    settings += "\nNODE=n" + std::to_string(options.nodes[static_cast<std::size_t>(seat.rank)]);
  }
  context_options.settings = settings.c_str();
  context_options.idle = options.idle;
  torii_context* context = nullptr;
  EXPECT_EQ(torii_context_create(&context_options, &context), TORII_OK) << torii_last_error();
  torii_team* team = nullptr;
  if (context != nullptr) {
    torii_team_options team_options = {};
    team_options.size = sizeof(team_options);
    team_options.topology = text_or_null(options.topology);
    team_options.algorithm = text_or_null(options.algorithm);
    team_options.determinism = text_or_null(options.determinism);
    team_options.segment_bytes = options.segment_bytes;
    const torii_status status = torii_team_create(context, &team_options, &team);
    EXPECT_EQ(status, options.refusal.empty() ? TORII_OK : TORII_UNSUPPORTED) << torii_last_error();
    if (!options.refusal.empty()) {
      EXPECT_NE(std::string(torii_last_error()).find(options.refusal), std::string::npos) << torii_last_error();
    }
  }
  if (team != nullptr) body(context, team);
  // Threads share one mapping of an arena: nobody unmaps his while another may still put into it.
  end.arrive_and_wait();
  EXPECT_EQ(torii_team_destroy(team), TORII_OK) << torii_last_error();
  end.arrive_and_wait();
  EXPECT_EQ(torii_context_destroy(context), TORII_OK) << torii_last_error();
}

}  // namespace

void run_as_threads(const ThreadTeam& options, const std::function<void(torii_context*, torii_team*)>& body) {
  Board board(options.ranks);
  board.set_ranks(static_cast<std::size_t>(options.ranks));
  std::barrier<> end(options.ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] { run_rank(options, {&board, rank}, end, body); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string algorithm_of(torii_team* team, const torii_call& call) {
  torii_choice choice = {};
  choice.size = sizeof(choice);
  EXPECT_EQ(torii_choose(team, &call, &choice), TORII_OK) << torii_last_error();
  return choice.algorithm;
}

}  // namespace torii::tests
