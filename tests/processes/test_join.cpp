// SPDX-License-Identifier: Apache-2.0
// Joining a job: by callback, under torii-run, as threads; refused launchers, missing, dead, misplaced and strange
// peers.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "runtime/base/log.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "tests/support/places.hpp"
#include "tests/support/process.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii::tests {
namespace {

using shared_memory::kArenaBytesMin;
using shared_memory::make_arena;
using shared_memory::NodePeers;
using shared_memory::Nodes;

const std::string kToriiRun = bin_dir() + "/torii-run";

Outcome run_ranks(int ranks, std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  std::vector<std::string> command{kToriiRun, "-n", std::to_string(ranks), "--timeout",
                                   "25",      "--", helper("join_rank")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, environment);
}

/// The error of a step, and a failure of the test when it has none.
Error error_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {Status::ok, ""};
}

TEST(Join, WithoutALauncherIsAJobOfOneRank) {
  const auto bootstrap = join(Settings::load());
  EXPECT_EQ(bootstrap->ranks(), 1);
  EXPECT_EQ(gather_texts(*bootstrap, "hello"), std::vector<std::string>{"hello"});
}

TEST(Join, CallbackServesAndItsFailureIsReported) {
  struct Embedder {
    int calls = 0;
    int code = 0;
  } embedder;
  const auto function = [](const void* mine, void* all, std::size_t bytes, void* data) {
    auto& self = *static_cast<Embedder*>(data);
    ++self.calls;
    // Plays rank 0 as well, with the same blob.
    std::memcpy(all, mine, bytes);
    std::memcpy(static_cast<std::byte*>(all) + bytes, mine, bytes);
    return self.code;
  };
  const auto bootstrap = join(Settings::load(), {function, &embedder, 1, 2});
  EXPECT_EQ(bootstrap->rank(), 1);
  EXPECT_EQ(gather_values(*bootstrap, 42), (std::vector<int>{42, 42}));
  EXPECT_EQ(embedder.calls, 1);
  embedder.code = 7;
  const Error error = error_of([&] { gather_values(*bootstrap, 42); });
  EXPECT_EQ(error.status(), Status::transport);
  EXPECT_NE(std::string(error.what()).find("returned 7 on rank 1"), std::string::npos);
  for (const auto& [rank, ranks] : {std::pair(2, 2), std::pair(-1, 2), std::pair(0, 0)}) {
    EXPECT_EQ(error_of([&, r = rank, n = ranks] {
                join(Settings::load(), {function, &embedder, r, n});
              }).status(),
              Status::invalid_argument);
  }
}

TEST(Join, LaunchersWithoutAnExchangeAreRefused) {
  struct Case {
    std::vector<std::string> environment;
    const char* names;
  };
  const Case cases[] = {{{"WORLD_SIZE=2", "RANK=0"}, "WORLD_SIZE=2 says that RANK, WORLD_SIZE"},
                        {{"OMPI_COMM_WORLD_SIZE=4"}, "OMPI_COMM_WORLD_SIZE=4 says that Open MPI's mpirun"},
                        {{"PMI_SIZE=3"}, "PMI_SIZE=3 says that PMI"},
                        {{"SLURM_NTASKS=8", "SLURM_PROCID=1"}, "SLURM_NTASKS=8 says that srun"},
                        {{"PMIX_RANK=0"}, "PMIX_RANK says that a PMIx launcher"}};
  for (const Case& one : cases) {
    const Outcome outcome = run({helper("join_rank"), "gather"}, one.environment);
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    EXPECT_NE(outcome.output.find("error 4 "), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find(one.names), std::string::npos) << outcome.output;
  }
}

TEST(Join, LaunchersOfOneRankAndInteractiveAllocationsAreFine) {
  const std::vector<std::vector<std::string>> environments{
      {"WORLD_SIZE=1"}, {"OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=0"}, {"PMI_SIZE=1"}, {"SLURM_NTASKS=8"}};
  for (const auto& environment : environments) {
    const Outcome outcome = run({helper("join_rank"), "gather"}, environment);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
}

TEST(Join, BrokenLauncherVariablesAreNamed) {
  const auto output = [](const std::vector<std::string>& environment) {
    const Outcome outcome = run({helper("join_rank"), "gather"}, environment);
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    return outcome.output;
  };
  EXPECT_NE(output({"WORLD_SIZE=two"}).find("WORLD_SIZE is 'two'; it must be a whole number"), std::string::npos);
  EXPECT_NE(output({"TORII_JOB_FD=x"}).find("TORII_JOB_FD is 'x'"), std::string::npos);
  EXPECT_NE(output({"TORII_JOB_FD=0"}).find("comes with TORII_RANK=nothing and TORII_RANKS=nothing"),
            std::string::npos);
  EXPECT_NE(output({"TORII_JOB_FD=0", "TORII_RANK=2", "TORII_RANKS=2"}).find("TORII_RANK=2 and TORII_RANKS=2"),
            std::string::npos);
  EXPECT_NE(output({"TORII_JOB_FD=987", "TORII_RANK=0", "TORII_RANKS=2"}).find("is not the socket of torii-run"),
            std::string::npos);
}

/// A rank that comes late hears of the join that has failed, and then all join once more.
TEST(Join, CanBeRepeatedAfterATimeout) {
  const Outcome outcome = run_ranks(3, {"again"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* line : {"rank 0: rank 2 has not joined in time\n", "rank 1: rank 2 has not joined in time\n"}) {
    EXPECT_EQ(count_of(outcome.output, line), 2) << outcome.output;
  }
  EXPECT_EQ(count_of(outcome.output, "rank 2: rank 2 has not joined in time\n"), 1) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "gathered 3\n"), 3) << outcome.output;
}

TEST(Join, UnknownVariablesAreReportedOncePerJob) {
  const Outcome outcome = run_ranks(3, {"gather"}, {"TORII_ENGINSE=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "TORII_ENGINSE is not a setting; the nearest one is TORII_ENGINES"), 1)
      << outcome.output;
}

TEST(Join, RanksOfToriiRunGatherAndMap) {
  for (const int ranks : {1, 2, 5}) {
    const Outcome gathered = run_ranks(ranks, {"gather"});
    EXPECT_EQ(gathered.code, 0) << gathered.output;
    EXPECT_EQ(count_of(gathered.output, "gathered " + std::to_string(ranks)), ranks) << gathered.output;
    const Outcome mapped = run_ranks(ranks, {"peers"});
    EXPECT_EQ(mapped.code, 0) << mapped.output;
    EXPECT_EQ(count_of(mapped.output, "mapped arenas of 68719476736"), ranks) << mapped.output;
  }
}

TEST(Join, NothingIsSaidOnSuccess) {
  const Outcome outcome = run_ranks(2, {"leave", "7"});  // no rank 7: both only gather
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(count_of(outcome.output, "\n"), 2) << outcome.output;
}

TEST(Join, AMissingRankIsNamedByAllOthersAfterTheTimeout) {
  const Outcome outcome = run_ranks(3, {"late", "1"}, {"TORII_TIMEOUT=0.5"});
  EXPECT_EQ(outcome.code, 4) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "error 6 about rank 1: rank 1 has not joined in time"), 2) << outcome.output;
}

TEST(Join, ADeadRankIsNamedByAllOthersAtOnce) {
  const Outcome outcome = run_ranks(3, {"die", "2"});
  EXPECT_EQ(outcome.code, 137) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "error 7 about rank 2: rank 2 was ended by signal 9 (Killed) before"), 2)
      << outcome.output;
  EXPECT_LT(outcome.seconds, 10);
}

TEST(Join, ARankThatLeavesEarlyIsNamed) {
  const Outcome outcome = run_ranks(3, {"leave", "0"});
  EXPECT_EQ(outcome.code, 5) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "error 7 about rank 0: rank 0 ended with code 0 before"), 2) << outcome.output;
}

TEST(Join, PartsOfDifferentSizeAreAMismatch) {
  const Outcome outcome = run_ranks(3, {"unequal", "1"});
  EXPECT_EQ(count_of(outcome.output, "error 3 about rank 1: rank 1 exchanges 8 bytes and rank 0 4"), 3)
      << outcome.output;
}

TEST(Join, ARankThatStopsInTheHandshakeIsNamed) {
  // As the lowest, a middle and the highest rank: whom others dial, and who dials them.
  for (const std::string rank : {"0", "1", "2"}) {
    const Outcome outcome = run_ranks(3, {"stop-in-handshake", rank}, {"TORII_TIMEOUT=0.5"});
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "error 6 about rank " + rank + ": rank " + rank + " (host "), 2)
        << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "did not hand over its arena in time"), 2) << outcome.output;
  }
}

TEST(Join, ARankThatDiesInTheHandshakeIsNamedAtOnce) {
  for (const std::string rank : {"0", "1", "2"}) {
    const Outcome outcome = run_ranks(3, {"die-in-handshake", rank});
    EXPECT_EQ(outcome.code, 137) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "error 7 about rank " + rank + ": rank " + rank + " "), 2) << outcome.output;
    EXPECT_LT(outcome.seconds, 10);
  }
}

TEST(Join, DeathIsNoticedWithin100Milliseconds) {
  for (const std::string mode : {"notice", "notice-fork", "notice-exec"}) {
    double best_ms = 1e9;
    for (int attempt = 0; attempt < 5 && best_ms > 100; ++attempt) {  // the machine may be busy with something else
      const Outcome outcome = run_ranks(3, {mode});
      EXPECT_EQ(outcome.code, mode == "notice-exec" ? 0 : 137) << outcome.output;
      ASSERT_EQ(count_of(outcome.output, "noticed after "), 2) << outcome.output;
      double worst_ms = 0;
      const std::regex pattern("noticed after ([0-9.]+) ms");
      for (std::sregex_iterator at(outcome.output.begin(), outcome.output.end(), pattern), end; at != end; ++at) {
        worst_ms = std::max(worst_ms, std::stod((*at)[1]));
      }
      best_ms = std::min(best_ms, worst_ms);
    }
    EXPECT_LE(best_ms, 100) << mode;
  }
}

TEST(Join, StrangersChangeNothing) {
  const Outcome outcome = run_ranks(4, {"strangers"}, {"TORII_TIMEOUT=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "joined among strangers"), 4) << outcome.output;
}

TEST(Join, RanksOfDifferentHostsAreRefused) {
  const Outcome outcome = run_ranks(3, {"other-host"});
  if (outcome.code == 77) GTEST_SKIP() << "this user cannot make a UTS namespace";
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "error 4 about rank -1: shared_memory cannot reach beyond one machine"), 3)
      << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "rank 2 on host elsewhere"), 3) << outcome.output;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers need an unlimited address space
TEST(Join, ArenasShrinkToWhatEveryRankCanMap) {
  const auto limited = [](const std::string& kib) {
    const std::string limit = "[ $TORII_RANK = 1 ] && ulimit -v " + kib + "; exec " + helper("join_rank") + " peers";
    return run({kToriiRun, "-n", "2", "--timeout", "25", "--", "sh", "-c", limit});
  };
  const Outcome less = limited("5000000");
  EXPECT_EQ(less.code, 0) << less.output;
  EXPECT_EQ(count_of(less.output, "mapped arenas of 2147483648"), 2) << less.output;
  const Outcome none = limited("400000");
  EXPECT_EQ(none.code, 3) << none.output;
  EXPECT_EQ(count_of(none.output, "error 5 about rank 1: rank 1: this process cannot map 2 arenas"), 2) << none.output;
}
#endif

TEST(Join, ThreadsOfOneProcessShareTheMapping) {
  std::vector<std::byte*> bases(4);
  run_ranks_as_threads(4, [&](Bootstrap& bootstrap) {
    const Nodes nodes(bootstrap);
    const auto arena = make_arena(bootstrap, nodes, kArenaBytesMin);
    const NodePeers peers(bootstrap, nodes, *arena, 10);
    const auto rank = static_cast<std::size_t>(peers.rank());
    bases[rank] = arena->base();
    gather_values(bootstrap, 0);
    for (int peer = 0; peer < 4; ++peer) {
      EXPECT_TRUE(peers.alive(peer));
      EXPECT_EQ(peers.base(peer), bases[static_cast<std::size_t>(peer)]);
      EXPECT_EQ(nodes.host(peer), nodes.host(0));
    }
    gather_values(bootstrap, 0);
  });
}

TEST(Join, OversubscriptionCountsAllowedCpus) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cpus = CPU_COUNT(&before);
  for (const int ranks : {1, 2, cpus, cpus + 1}) {
    run_ranks_as_threads(ranks, [&](Bootstrap& bootstrap) {
      const Nodes nodes(bootstrap);
      const auto arena = make_arena(bootstrap, nodes, kArenaBytesMin);
      EXPECT_EQ(NodePeers(bootstrap, nodes, *arena, 10).oversubscribed(), ranks > cpus) << ranks;
      gather_values(bootstrap, 0);
    });
  }
}

TEST(ThreadRanks, AMissingRankAndALeaverAreNamed) {
  const Error late = error_of([] {
    run_ranks_as_threads(
        2,
        [](Bootstrap& bootstrap) {
          if (bootstrap.rank() == 0) {
            gather_values(bootstrap, 0);
          } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
          }
        },
        0.05);
  });
  EXPECT_EQ(late.status(), Status::timeout);
  EXPECT_EQ(late.rank(), 1);
  const Error left = error_of([] {
    run_ranks_as_threads(2, [](Bootstrap& bootstrap) {
      if (bootstrap.rank() == 0) gather_values(bootstrap, 0);
    });
  });
  EXPECT_EQ(left.status(), Status::peer_lost);
  EXPECT_EQ(left.rank(), 1);
}

}  // namespace
}  // namespace torii::tests
