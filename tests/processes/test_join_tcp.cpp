// SPDX-License-Identifier: Apache-2.0
// Joining by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: right jobs, wrong variables, tokens, missing and dead
// ranks.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "runtime/devices/address.hpp"
#include "tests/processes/join_job.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

TEST(JoinTcp, RanksGatherAndMap) {
  for (const int ranks : {2, 3, 9}) {
    for (const std::string mode : {"gather", "peers"}) {
      for (const Outcome& one : run_job(ranks, {mode}, meeting_at(free_port()))) {
        EXPECT_EQ(one.code, 0) << one.output;
        EXPECT_TRUE(holds(one.output, mode == "gather" ? "gathered " + std::to_string(ranks) : "mapped arenas"));
      }
    }
  }
}

TEST(JoinTcp, TheSameTokenIsNeededAndSufficient) {
  for (const Outcome& one : run_job(3, {"gather"}, meeting_at(free_port()) + Words{"TORII_JOB_TOKEN=secret"})) {
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_EQ(one.output.find("secret"), std::string::npos);
  }
}

TEST(JoinTcp, AProcessMayJoinAgain) {
  for (const Outcome& one : run_job(3, {"twice"}, meeting_at(free_port()))) {
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_NE(one.output.find("gathered"), one.output.rfind("gathered")) << one.output;
  }
}

TEST(JoinTcp, TheAddressIsTheOneThatReachesTheOthers) {
  for (const Outcome& one : run_job(2, {"address"}, meeting_at(free_port()))) {
    EXPECT_TRUE(holds(one.output, "reached from 127.0.0.1")) << one.output;
  }
}

TEST(JoinTcp, AWrongTokenIsRefusedOnBothSides) {
  const int port = free_port();
  const Words common = meeting_at(port) + Words{"TORII_TIMEOUT=1.5"};
  const auto zero = start_rank(0, 3, {"gather"}, common + Words{"TORII_JOB_TOKEN=right"});
  const auto one = start_rank(1, 3, {"gather"}, common + Words{"TORII_JOB_TOKEN=wrong"});
  const auto two = start_rank(2, 3, {"gather"}, common + Words{"TORII_JOB_TOKEN=right"});
  const Outcome refused = one->wait();
  EXPECT_EQ(refused.code, 3) << refused.output;
  EXPECT_TRUE(holds(refused.output, "error 3 about rank 1: rank 0 at 127.0.0.1:" + std::to_string(port) +
                                        " refused rank 1: their job tokens (TORII_JOB_TOKEN) differ"))
      << refused.output;
  const Outcome refuser = zero->wait();
  EXPECT_EQ(refuser.code, 4) << refuser.output;
  EXPECT_TRUE(holds(refuser.output, "torii error: a connection as rank 1 was refused: its job token differs"))
      << refuser.output;
  EXPECT_TRUE(holds(refuser.output, "error 6 about rank 1: rank 1 has not joined in time")) << refuser.output;
  const Outcome told = two->wait();
  EXPECT_EQ(told.code, 4) << told.output;
  EXPECT_TRUE(holds(told.output, "error 6 about rank 1: rank 1 has not joined in time")) << told.output;
}

TEST(JoinTcp, AShortTokenIsToldOnce) {
  for (const std::string token : {"short", "fifteen-letters", "sixteen-letters."}) {
    const auto outcomes = run_job(2, {"gather"}, meeting_at(free_port()) + Words{"TORII_JOB_TOKEN=" + token});
    const std::string told = "TORII_JOB_TOKEN has only " + std::to_string(token.size()) + " bytes and can be guessed";
    for (const Outcome& one : outcomes) {
      EXPECT_EQ(one.code, 0) << one.output;
      EXPECT_EQ(holds(one.output, told), &one == &outcomes[0] && token.size() < 16) << one.output;
      EXPECT_FALSE(holds(one.output, token)) << one.output;
    }
  }
}

TEST(JoinTcp, MissingRanksAreNamedByAllOthers) {
  const Words common = meeting_at(free_port()) + Words{"TORII_TIMEOUT=1"};
  const auto zero = start_rank(0, 5, {"gather"}, common);
  const auto three = start_rank(3, 5, {"gather"}, common);
  for (const auto* one : {&zero, &three}) {
    const Outcome outcome = (*one)->wait();
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, "error 6 about rank 1: ranks 1, 2, 4 have not joined in time")) << outcome.output;
    EXPECT_LT(outcome.seconds, 10);
  }
}

TEST(JoinTcp, AMissingRank0IsNamed) {
  const int port = free_port();
  const Outcome outcome = start_rank(1, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=0.5"})->wait();
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "error 6 about rank 0: rank 0 has not joined in time (127.0.0.1:" +
                                        std::to_string(port) + ": Connection refused)"))
      << outcome.output;
}

TEST(JoinTcp, ALateRankIsNamedByAllOthers) {
  const Words common = meeting_at(free_port()) + Words{"TORII_TIMEOUT=0.7"};
  const auto zero = start_rank(0, 3, {"late", "1"}, common);
  const auto late = start_rank(1, 3, {"late", "1"}, common);  // connects, and then sleeps
  const auto two = start_rank(2, 3, {"late", "1"}, common);
  for (const auto* one : {&zero, &two}) {
    const Outcome outcome = (*one)->wait();
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, "error 6 about rank 1: rank 1 has not joined in time")) << outcome.output;
  }
}

TEST(JoinTcp, DeadRanksAreNamedAtOnce) {
  for (const int dead : {0, 1, 2}) {
    for (const std::string mode : {"die", "leave"}) {
      const auto outcomes = run_job(3, {mode, std::to_string(dead)}, meeting_at(free_port()));
      for (int rank = 0; rank < 3; ++rank) {
        const Outcome& one = outcomes[static_cast<std::size_t>(rank)];
        if (rank == dead) continue;
        const std::string who = "rank " + std::to_string(dead);
        EXPECT_EQ(one.code, 5) << one.output;
        EXPECT_TRUE(holds(one.output, "error 7 about " + who + ": " + who + " ended before")) << one.output;
        EXPECT_LT(one.seconds, 10);
      }
    }
  }
}

TEST(JoinTcp, ARankThatDiesWhileArenasAreHandedOverIsNamedByAllOthers) {
  for (const int dead : {0, 1, 2}) {
    const auto outcomes = run_job(3, {"die-in-handshake", std::to_string(dead)}, meeting_at(free_port()));
    for (int rank = 0; rank < 3; ++rank) {
      const Outcome& one = outcomes[static_cast<std::size_t>(rank)];
      if (rank == dead) continue;
      EXPECT_EQ(one.code, 5) << one.output;
      EXPECT_TRUE(holds(one.output, "error 7 about rank " + std::to_string(dead) + ": ")) << one.output;
      EXPECT_LT(one.seconds, 10);
    }
  }
}

TEST(JoinTcp, ARankThatLeavesAChildInTheJoinIsNamedAtOnce) {
  for (const int dead : {0, 1, 2}) {
    const auto outcomes = run_job(3, {"leave-child-in-handshake", std::to_string(dead)}, meeting_at(free_port()));
    for (int rank = 0; rank < 3; ++rank) {
      const Outcome& one = outcomes[static_cast<std::size_t>(rank)];
      if (rank == dead) continue;
      EXPECT_EQ(one.code, 5) << one.output;
      EXPECT_TRUE(holds(one.output, "error 7 about rank " + std::to_string(dead) + ": ")) << one.output;
      EXPECT_LT(one.seconds, 3);  // the child lives for 4 s
    }
  }
}

TEST(JoinTcp, PartsOfDifferentSizeAreAMismatch) {
  for (const Outcome& one : run_job(3, {"unequal", "1"}, meeting_at(free_port()))) {
    EXPECT_TRUE(holds(one.output, "error 3 about rank 1: rank 1 exchanges 8 bytes and rank 0 4")) << one.output;
  }
}

/// Ranks that may have so many open files, of which the program itself takes three.
std::vector<Outcome> run_limited(int ranks, int files, int limited_rank) {
  const Words environment = meeting_at(free_port()) + Words{"TORII_TIMEOUT=20"};
  std::vector<std::unique_ptr<Process>> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool is_limited = limited_rank < 0 || limited_rank == rank;
    const std::string limit = is_limited ? "ulimit -n " + std::to_string(files) + "; " : "";
    processes.push_back(std::make_unique<Process>(
        Words{"sh", "-c", limit + "exec " + helper("join_rank") + " gather"},
        Words{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks)} + environment));
  }
  std::vector<Outcome> outcomes;
  for (const auto& process : processes) outcomes.push_back(process->wait());
  return outcomes;
}

TEST(JoinTcp, TooFewDescriptorsAreNamedByAllAtOnce) {
  for (const int limited_rank : {-1, 0}) {
    const auto outcomes = run_limited(6, 8, limited_rank);
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      const std::string& output = outcomes[rank].output;
      EXPECT_EQ(outcomes[rank].code, 3) << output;
      EXPECT_TRUE(holds(output, "error 5 about rank 0: ") && holds(output, "limit of open files")) << output;
      EXPECT_TRUE(holds(output, "(ulimit -n)") && holds(output, rank == 0 ? "files is 8;" : "refused rank")) << output;
      EXPECT_LT(outcomes[rank].seconds, 10);
    }
  }
}

/// The last rank takes the last descriptor of rank 0, which then has none for a caller that does not exist. Which limit
/// that is depends on what the test has left open.
TEST(JoinTcp, AsManyDescriptorsAsRank0NeedsSuffice) {
  constexpr int kRanks = 5;
  for (int files = kRanks + 2; files < 64; ++files) {
    const std::vector<Outcome> outcomes = run_limited(kRanks, files, 0);
    if (outcomes[0].code == 3) continue;
    for (const Outcome& one : outcomes) {
      EXPECT_EQ(one.code, 0) << files << " files\n" << one.output;
      EXPECT_TRUE(holds(one.output, "gathered 5")) << one.output;
    }
    return;
  }
  FAIL() << "64 open files are too few for five ranks";
}

TEST(JoinTcp, AFewDescriptorsMoreSuffice) {
  for (const Outcome& one : run_limited(5, 10, -1)) {
    EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_TRUE(holds(one.output, "gathered 5")) << one.output;
  }
}

TEST(JoinTcp, DifferentNumbersOfRanksAreRefusedOnBothSides) {
  const Words common = meeting_at(free_port()) + Words{"TORII_TIMEOUT=1"};
  const auto zero = start_rank(0, 2, {"gather"}, common);
  const Outcome refused = start_rank(1, 3, {"gather"}, common)->wait();
  EXPECT_TRUE(holds(refused.output, "error 3 about rank 1: ")) << refused.output;
  EXPECT_TRUE(holds(refused.output, "it counts 2 ranks and rank 1 counts 3")) << refused.output;
  const Outcome refuser = zero->wait();
  EXPECT_TRUE(holds(refuser.output, "it counts 3 ranks and rank 0 counts 2")) << refuser.output;
}

TEST(JoinTcp, ATakenRankIsRefused) {
  const int port = free_port();
  const Words common = meeting_at(port) + Words{"TORII_TIMEOUT=4"};
  const auto zero = start_rank(0, 3, {"gather"}, common);
  const auto first = start_rank(1, 3, {"gather"}, common);
  const auto second = start_rank(1, 3, {"gather"}, common);
  const auto two_later = [&] {
    // One of the two must have been refused before the job is complete.
    while (true) {
      for (const auto* one : {&first, &second}) {
        if (kill((*one)->pid(), 0) != 0) return;
        std::string state;
        std::ifstream("/proc/" + std::to_string((*one)->pid()) + "/stat") >> state >> state >> state;
        if (state == "Z") return;
      }
      usleep(10'000);
    }
  };
  two_later();
  const auto two = start_rank(2, 3, {"gather"}, common);
  const Outcome a = first->wait();
  const Outcome b = second->wait();
  EXPECT_EQ(std::min(a.code, b.code), 0) << a.output << b.output;
  EXPECT_EQ(std::max(a.code, b.code), 3) << a.output << b.output;
  EXPECT_TRUE(holds(a.output + b.output, "error 1 about rank 1: ")) << a.output << b.output;
  EXPECT_TRUE(holds(a.output + b.output, "another process has joined as that rank")) << a.output << b.output;
  EXPECT_EQ(zero->wait().code, 0);
  EXPECT_EQ(two->wait().code, 0);
}

TEST(JoinTcp, WrongVariablesAreNamed) {
  struct Case {
    Words environment;
    const char* says;
  };
  const std::string port = std::to_string(free_port());
  const Descriptor taken = listen_on(Address::parse("127.0.0.1", 0), {}, 1);
  const std::string taken_port = std::to_string(Address::of_socket(taken.get()).port());
  // 192.0.2.1 is nobody's address (RFC 5737), and nothing is sent there.
  const Case cases[] = {
      {{"RANK=", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, "speaks of several ranks, but RANK is not set"},
      {{"RANK=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, "RANK is 2; with WORLD_SIZE=2 it must be from 0"},
      {{"RANK=0", "MASTER_ADDR=127.0.0.1"}, "MASTER_ADDR is set and MASTER_PORT is not"},
      {{"RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=0"}, "MASTER_PORT is 0; it must be a port"},
      {{"RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=x"}, "MASTER_PORT is 'x'"},
      {{"RANK=0", "MASTER_ADDR=0.0.0.0", "MASTER_PORT=" + port, "TORII_JOB_TOKEN=t"}, "means every interface"},
      {{"RANK=0", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=" + port}, "which other hosts can reach, and TORII_JOB_TOKEN"},
      {{"RANK=1", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=" + port}, "which other hosts can reach, and TORII_JOB_TOKEN"},
      {{"RANK=0", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=" + port, "TORII_JOB_TOKEN=t"}, "not an address of this host"},
      {{"RANK=0", "MASTER_ADDR=192.0.2.1", "MASTER_PORT=" + port, "TORII_INSECURE=1"}, "not an address of this host"},
      {{"RANK=0", "MASTER_ADDR=no such host", "MASTER_PORT=" + port}, "the host 'no such host' cannot be found"},
      {{"RANK=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + taken_port}, "so set it to a free one"}};
  for (const Case& one : cases) {
    const Outcome outcome =
        run({helper("join_rank"), "gather"}, Words{"WORLD_SIZE=2", "TORII_TIMEOUT=2"} + one.environment);
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    EXPECT_TRUE(holds(outcome.output, one.says)) << outcome.output;
  }
}

TEST(JoinTcp, ListensOnOneAddressAndOnlyWhileRanksAreMissing) {
  const int port = free_port();
  const auto zero = start_rank(0, 2, {"late", "0"}, meeting_at(port));
  ASSERT_TRUE(wait_for_listener(port));
  EXPECT_EQ(listeners_at(port), Words{"0100007F"});
  const auto one = start_rank(1, 2, {"gather"}, meeting_at(port));
  const double end_s = now_s() + 10;
  while (!listeners_at(port).empty() && now_s() < end_s) usleep(1000);
  EXPECT_TRUE(listeners_at(port).empty());
  EXPECT_EQ(kill(zero->pid(), 0), 0);  // it is asleep in the job
}

TEST(JoinTcp, PortsServeWhenMasterPortIsNotSet) {
  const int port = free_port();
  const std::string range = "TORII_PORTS=" + std::to_string(port) + "-" + std::to_string(port);
  for (const Outcome& one : run_job(2, {"gather"}, {"MASTER_ADDR=127.0.0.1", range})) {
    EXPECT_EQ(one.code, 0) << one.output;
  }
}

}  // namespace
}  // namespace torii::tests
