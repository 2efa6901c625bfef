// SPDX-License-Identifier: Apache-2.0
// What fails on one rank alone while a context or a team is made fails on all, in time, with that rank's reason; all
// make equally many exchanges; and nothing is lost by it.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/meeting.hpp"
#include "tests/conformance/thread_team.hpp"

namespace {

/// Allocations of the calling thread until one fails; 0: none does.
thread_local int allocations_left = 0;
/// What goes wrong on the calling thread; called right before it makes a team.
thread_local std::function<void()> spoil;
void arm() {
  if (spoil) spoil();
}

void* allocate(std::size_t bytes) {
  if (allocations_left != 0 && --allocations_left == 0) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (allocations_left != 0 && --allocations_left == 0) return nullptr;
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace torii::tests {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// What the ranks got, each of them: status and reason.
struct Answer {
  torii_status status = TORII_OK;
  std::string text;
};
Answer answer_of(torii_status status) { return {status, status == TORII_OK ? "" : torii_last_error()}; }

void expect_alike(const std::vector<Answer>& answers, const std::string& when) {
  for (const Answer& one : answers) {
    EXPECT_STREQ(torii_status_name(one.status), torii_status_name(answers[0].status)) << when << ": " << one.text;
    EXPECT_EQ(one.text, answers[0].text) << when;
  }
}

void expect_all(const std::vector<Answer>& answers, torii_status status, const std::string& part) {
  for (const Answer& one : answers) {
    EXPECT_STREQ(torii_status_name(one.status), torii_status_name(status)) << one.text;
    EXPECT_NE(one.text.find(part), std::string::npos) << "'" << one.text << "' does not hold '" << part << "'";
  }
}

/// Memory of the embedder's function is its own affair.
int exchange(const void* mine, void* all, std::size_t bytes, void* data) {
  const int left = std::exchange(allocations_left, 0);
  const int code = Meeting::exchange(mine, all, bytes, data);
  if (allocations_left == 0) allocations_left = left;
  return code;
}

/// Three ranks as threads, with an exchange that is counted and can be made to fail.
class OneFails : public ::testing::Test {
 protected:
  using Body = std::function<void(int rank)>;

  static void on_all(const Body& body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(body, rank);
    for (std::thread& thread : threads) thread.join();
  }

  torii_context_options options_of(int rank) {
    torii_context_options options = {};
    options.size = sizeof(options);
    options.rank = rank;
    options.ranks = kRanks;
    options.exchange = exchange;
    options.exchange_data = &seats_[static_cast<std::size_t>(rank)];
    options.settings = settings_.c_str();
    return options;
  }

  void create(int rank) {
    const torii_context_options options = options_of(rank);
    ASSERT_EQ(torii_context_create(&options, &context(rank)), TORII_OK) << torii_last_error();
  }
  /// Threads share one mapping of an arena: nobody unmaps his while another may still put into it.
  void destroy(int rank) {
    end_.arrive_and_wait();
    EXPECT_EQ(torii_context_destroy(context(rank)), TORII_OK) << torii_last_error();
  }
  torii_context*& context(int rank) { return contexts_[static_cast<std::size_t>(rank)]; }
  Answer& answer(int rank) { return answers_[static_cast<std::size_t>(rank)]; }

  void expect_equal_calls() {
    for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(meeting_.calls(rank), meeting_.calls(0)) << "of rank " << rank;
  }

  std::string settings_ = "ARENA=256M\nTIMEOUT=3";
  Meeting meeting_{kRanks};
  std::vector<Meeting::Seat> seats_ = {{meeting_, 0}, {meeting_, 1}, {meeting_, 2}};
  std::vector<torii_context*> contexts_ = std::vector<torii_context*>(kRanks);
  std::vector<Answer> answers_ = std::vector<Answer>(kRanks);
  std::barrier<> end_{kRanks};
};

torii_status make_of_members(torii_context* context, Meeting::Seat& seat, std::uint64_t number, torii_team** team) {
  static const int members[kRanks] = {0, 1, 2};
  torii_team_options options = {};
  options.size = sizeof(options);
  options.members = members;
  options.member_count = kRanks;
  options.exchange = exchange;
  options.exchange_data = &seat;
  options.number = number;
  arm();
  return torii_team_create(context, &options, team);
}

/// Ways to make a team, each over a team of all ranks.
struct Way {
  const char* name;
  torii_status (*make)(torii_context* context, torii_team* whole, Meeting::Seat& seat, torii_team** team);
};
const Way kWays[] = {{"world",
                      [](torii_context* context, torii_team*, Meeting::Seat&, torii_team** team) {
                        arm();
                        return torii_team_create(context, nullptr, team);
                      }},
                     {"members", [](torii_context* context, torii_team*, Meeting::Seat& seat,
                                    torii_team** team) { return make_of_members(context, seat, 0, team); }},
                     {"number", [](torii_context* context, torii_team*, Meeting::Seat& seat,
                                   torii_team** team) { return make_of_members(context, seat, 1, team); }},
                     {"split",
                      [](torii_context*, torii_team* whole, Meeting::Seat&, torii_team** team) {
                        arm();
                        return torii_team_split(whole, 0, 0, nullptr, team);
                      }},
                     {"survivors", [](torii_context* context, torii_team*, Meeting::Seat&, torii_team** team) {
                        torii_team* ended = nullptr;
                        torii_status status = torii_team_create(context, nullptr, &ended);
                        if (status != TORII_OK) return status;
                        (void)torii_team_abort(ended, "to see who survives");
                        (void)torii_barrier(ended);
                        arm();
                        status = torii_team_survivors(ended, nullptr, team);
                        const int left = std::exchange(allocations_left, 0);
                        EXPECT_EQ(torii_team_destroy(ended), TORII_OK);
                        allocations_left = left;
                        return status;
                      }}};

/// All of the arena that can be allocated, down to pieces smaller than a team's memory.
std::vector<void*> fill(torii_context* context) {
  std::vector<void*> pieces;
  void* memory = nullptr;
  for (const std::size_t bytes : {8 * kMiB, kMiB / 16}) {
    while (torii_allocate(context, bytes, &memory) == TORII_OK) pieces.push_back(memory);
  }
  return pieces;
}

void free_all(torii_context* context, std::vector<void*>& pieces) {
  for (void* const piece : pieces) EXPECT_EQ(torii_free(context, piece), TORII_OK);
  pieces.clear();
}

std::size_t pieces_left(torii_context* context) {
  std::vector<void*> pieces = fill(context);
  const std::size_t count = pieces.size();
  free_all(context, pieces);
  return count;
}

TEST_F(OneFails, TeamsWithoutMemoryOnOneRank) {
  settings_ = "ARENA=512M\nTIMEOUT=3";
  on_all([&](int rank) {
    create(rank);
    if (context(rank) == nullptr) return;
    Meeting::Seat& seat = seats_[static_cast<std::size_t>(rank)];
    torii_team* whole = nullptr;
    ASSERT_EQ(torii_team_create(context(rank), nullptr, &whole), TORII_OK) << torii_last_error();
    for (const Way& way : kWays) {
      std::vector<void*> filling;
      if (rank == 1) spoil = [&] { filling = fill(context(rank)); };
      const auto begin = std::chrono::steady_clock::now();
      torii_team* team = nullptr;
      answer(rank) = answer_of(way.make(context(rank), whole, seat, &team));
      spoil = nullptr;
      EXPECT_EQ(team, nullptr) << way.name;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2)) << way.name;
      end_.arrive_and_wait();
      if (rank == 0) {
        SCOPED_TRACE(way.name);
        expect_all(answers_, TORII_NO_RESOURCE, "rank 1: no memory for the team: ");
        expect_equal_calls();
      }
      end_.arrive_and_wait();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
      free_all(context(rank), filling);
      if (torii_barrier(whole) != TORII_OK) {
        ADD_FAILURE() << way.name << ": " << torii_last_error();
        break;
      }
      EXPECT_EQ(way.make(context(rank), whole, seat, &team), TORII_OK) << way.name << ": " << torii_last_error();
      EXPECT_EQ(team == nullptr ? TORII_OK : torii_barrier(team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
      end_.arrive_and_wait();
    }
    EXPECT_EQ(torii_team_destroy(whole), TORII_OK);
    destroy(rank);
  });
}

/// Each allocation of rank 1 fails in turn, but for the first ones: the handle, the members,
/// and what telling a failure takes.
TEST_F(OneFails, TeamsOfWhichOneObjectCannotBeAllocated) {
  constexpr int kFirst = 6;
  settings_ = "ARENA=320M\nTIMEOUT=2";
  std::atomic<bool> goes_on = true;
  on_all([&](int rank) {
    create(rank);
    if (context(rank) == nullptr) return;
    Meeting::Seat& seat = seats_[static_cast<std::size_t>(rank)];
    torii_team* whole = nullptr;
    ASSERT_EQ(torii_team_create(context(rank), nullptr, &whole), TORII_OK) << torii_last_error();
    const std::size_t before = pieces_left(context(rank));
    for (const Way& way : kWays) {
      torii_team* team = nullptr;
      ASSERT_EQ(way.make(context(rank), whole, seat, &team), TORII_OK) << torii_last_error();
      EXPECT_EQ(torii_team_destroy(team), TORII_OK);
      int nth = kFirst;
      do {
        end_.arrive_and_wait();
        team = nullptr;
        if (rank == 1) spoil = [nth] { allocations_left = nth; };
        const torii_status status = way.make(context(rank), whole, seat, &team);
        const bool has_failed = allocations_left == 0;
        allocations_left = 0;
        spoil = nullptr;
        answer(rank) = answer_of(status);
        end_.arrive_and_wait();
        const std::string when = way.name + std::string(", allocation ") + std::to_string(nth++);
        if (rank == 0) expect_alike(answers_, when);
        EXPECT_EQ(torii_team_destroy(team), TORII_OK) << when;
        if (rank == 1) goes_on = has_failed && !HasFailure() && nth < 300;
        end_.arrive_and_wait();
      } while (goes_on);
      EXPECT_GT(nth, kFirst + 10) << way.name << ": no allocation has failed";
    }
    // Between nodes the last word of a team arrives with later calls.
    for (int call = 0; call < 20; ++call) EXPECT_EQ(torii_barrier(whole), TORII_OK) << torii_last_error();
    end_.arrive_and_wait();
    (void)pieces_left(context(rank));  // an allocation that finds none left frees what gone teams have left
    EXPECT_EQ(pieces_left(context(rank)), before);
    EXPECT_EQ(torii_team_destroy(whole), TORII_OK);
    destroy(rank);
  });
}

/// The first allocations of rank 1, which then does not come to the first exchange, in which the others wait.
TEST_F(OneFails, TheOthersOfASplitOrOfLeavesDoNotWait) {
  const Way leaves = {"leaves", [](torii_context*, torii_team* whole, Meeting::Seat&, torii_team**) {
                        torii_leaves* made = nullptr;
                        arm();
                        const torii_status status = torii_leaves_create(
                            whole, kRanks, static_cast<std::size_t>(torii_team_rank(whole)), 1, &made);
                        (void)torii_leaves_destroy(made);
                        return status;
                      }};
  settings_ = "ARENA=512M\nTIMEOUT=3";
  on_all([&](int rank) {
    create(rank);
    if (context(rank) == nullptr) return;
    for (const Way& way : {kWays[3], leaves}) {
      for (int nth = 1; nth < 6; ++nth) {
        torii_team* whole = nullptr;
        torii_team* part = nullptr;
        ASSERT_EQ(torii_team_create(context(rank), nullptr, &whole), TORII_OK) << torii_last_error();
        end_.arrive_and_wait();
        if (rank == 1) spoil = [nth] { allocations_left = nth; };
        const auto begin = std::chrono::steady_clock::now();
        const torii_status status = way.make(context(rank), whole, seats_[static_cast<std::size_t>(rank)], &part);
        allocations_left = 0;
        spoil = nullptr;
        EXPECT_TRUE(rank != 1 || nth > 1 || status == TORII_NO_RESOURCE) << way.name;
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2))
            << way.name << ", allocation " << nth << ", rank " << rank;
        end_.arrive_and_wait();
        EXPECT_EQ(torii_team_destroy(part), TORII_OK);
        EXPECT_EQ(torii_team_destroy(whole), TORII_OK);
      }
    }
    destroy(rank);
  });
}

/// As above; the first exchange has been made.
TEST_F(OneFails, ContextsOfWhichOneObjectCannotBeAllocated) {
  seats_[1].after = [](int) { arm(); };
  std::atomic<bool> goes_on = true;
  on_all([&](int rank) {
    int nth = 1;
    do {
      end_.arrive_and_wait();
      if (rank == 1) {
        spoil = [nth] {
          allocations_left = nth;
          spoil = nullptr;
        };
      }
      const torii_context_options options = options_of(rank);
      const torii_status status = torii_context_create(&options, &context(rank));
      const bool has_failed = allocations_left == 0;
      allocations_left = 0;
      answer(rank) = answer_of(status);
      end_.arrive_and_wait();
      if (rank == 0) expect_alike(answers_, "allocation " + std::to_string(nth));
      ++nth;
      EXPECT_EQ(torii_context_destroy(context(rank)), TORII_OK);
      if (rank == 1) goes_on = has_failed && !HasFailure() && nth < 300;
      end_.arrive_and_wait();
    } while (goes_on);
    EXPECT_GT(nth, 20) << "no allocation has failed";
  });
}

TEST_F(OneFails, SettingsOfOneRank) {
  const char* const bad[][2] = {{"TUNE_FILE=no-such-table", "rank 1: "},
                                {"RANK_MAP=file:no-such-map", "rank 1: "},
                                {"ISA=none", "rank 1: "},
                                {"CHANNELS=many", "rank 1: "},
                                {"NO_SUCH_THING=1", "rank 1: "}};
  for (const auto& [line, part] : bad) {
    on_all([&](int rank) {
      torii_context_options options = options_of(rank);
      const std::string own = settings_ + "\n" + line;
      if (rank == 1) options.settings = own.c_str();
      answer(rank) = answer_of(torii_context_create(&options, &context(rank)));
      EXPECT_EQ(torii_context_destroy(context(rank)), TORII_OK);
    });
    SCOPED_TRACE(line);
    expect_all(answers_, TORII_INVALID_ARGUMENT, part);
    expect_equal_calls();
  }
}

/// The exchange function of one rank exchanges, and then says that it has not. After the last one the others have
/// ended.
TEST_F(OneFails, AnExchangeOfOneRank) {
  on_all([&](int rank) {
    create(rank);
    destroy(rank);
  });
  const int calls = meeting_.calls(0);
  ASSERT_GT(calls, 8);
  for (int call = 0; call < calls - 1; ++call) {
    Meeting meeting(kRanks);
    on_all([&](int rank) {
      Meeting::Seat& seat = seats_[static_cast<std::size_t>(rank)];
      seat = Meeting::Seat(meeting, rank);
      if (rank == 2) seat.fails_at = call;
      const torii_context_options options = options_of(rank);
      answer(rank) = answer_of(torii_context_create(&options, &context(rank)));
      end_.arrive_and_wait();
      EXPECT_EQ(torii_context_destroy(context(rank)), TORII_OK);
    });
    SCOPED_TRACE("call " + std::to_string(call));
    expect_all(answers_, TORII_TRANSPORT, "rank 2: the exchange function of the embedder returned 7 on rank 2");
    for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(meeting.calls(rank), meeting.calls(0)) << "of rank " << rank;
  }
}

}  // namespace
}  // namespace torii::tests
