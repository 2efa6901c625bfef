// SPDX-License-Identifier: Apache-2.0
// Operands read out of the private memory of peers: the same bits, and a reason where that is not possible.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/execution/installed_plan.hpp"
#include "tests/conformance/plan_team.hpp"
#include "tests/conformance/thread_team.hpp"
#include "tests/support/thread_ranks.hpp"
#include "transports/shared_memory/shared_memory.hpp"

namespace torii::tests {
namespace {

TEST(CrossMemory, ChangesNoBit) {
  PlanRequest request;
  request.collective = Collective::broadcast;
  request.topology = Topology::node(4);
  request.root = 2;
  request.tuning = {.segment_bytes = 32768, .slots = 4, .window = 2};
  // Below the least size; one segment and a bit; larger than what one read takes.
  for (const std::size_t count : {std::size_t{9000}, std::size_t{17001}, std::size_t{200'003}}) {
    PlanRun run = make_run("node", request, count);
    run.calls = 3;
    const FillOperand fill = filler(run);
    const PlanOutcome sent = run_plans(run, fill);
    ASSERT_TRUE(sent.ok());
    EXPECT_EQ(sent.reads, 0U);
    run.cross_memory = true;
    const PlanOutcome read = run_plans(run, fill);
    ASSERT_TRUE(read.ok());
    EXPECT_TRUE(read.has_results_of(sent)) << count;
    EXPECT_EQ(read.reads > 0, count * sizeof(float) >= PrivateReadChoice::kBytesMin) << count;
    run.allocated = true;
    const PlanOutcome in_place = run_plans(run, fill);
    ASSERT_TRUE(in_place.ok());
    EXPECT_TRUE(in_place.has_results_of(sent)) << count;
    EXPECT_EQ(in_place.reads, 0U) << "what can be addressed is not read by a system call";
  }
}

TEST(CrossMemory, OperandsThatAreFoldedAreNotRead) {
  PlanRequest request;
  request.topology = Topology::node(3);
  request.tuning = {.segment_bytes = 32768, .slots = 4, .window = 2};
  PlanRun run = make_run("node", request, 100'000);
  run.cross_memory = true;
  const PlanOutcome outcome = run_plans(run, filler(run));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.reads, 0U);
}

/// Whether or not they have an operand to read, which all others can address here, and whatever schedule they run.
TEST(CrossMemory, AllRanksCountCallsAlike) {
  constexpr std::size_t kFloats = 48'000;
  const auto turns = [](const char* algorithm, Collective collective, bool allocated, bool one_shot = false) {
    PlanRequest request;
    request.collective = collective;
    request.topology = Topology::node(4);
    request.tuning = {.segment_bytes = kFloats * sizeof(float), .slots = 4, .window = 2, .one_shot = one_shot};
    PlanRun run = make_run(algorithm, request, kFloats);
    run.calls = 5;
    run.program = true;
    run.cross_memory = true;
    run.allocated = allocated;
    const PlanOutcome outcome = run_plans(run, filler(run));
    EXPECT_TRUE(outcome.ok());
    return outcome.turns;
  };
  const std::vector<std::uint32_t> all = {5, 5, 5, 5};
  for (const bool allocated : {false, true}) {
    EXPECT_EQ(turns("node", Collective::broadcast, allocated), all);
    EXPECT_EQ(turns("chain", Collective::broadcast, allocated), all);
    EXPECT_EQ(turns("node", Collective::allreduce, allocated, true), all) << "a linear program";
    EXPECT_EQ(turns("direct", Collective::alltoall, allocated), all);
  }
}

/// Enough calls for both ways to be tried, in place and not.
void gather_often(torii_team* team, std::size_t count) {
  const int rank = torii_team_rank(team);
  const int ranks = torii_team_ranks(team);
  std::vector<int> input(count), all(count * static_cast<std::size_t>(ranks));
  for (int call = 0; call < 12; ++call) {
    const bool in_place = call % 2 != 0;
    int* const own = in_place ? all.data() + static_cast<std::size_t>(rank) * count : input.data();
    for (std::size_t i = 0; i < count; ++i) own[i] = call * 1'000'000 + rank * 100'000 + static_cast<int>(i);
    ASSERT_EQ(torii_all_gather(team, own, all.data(), count, TORII_I32), TORII_OK) << torii_last_error();
    // The caller may write its input at once: nobody may read it any more.
    if (!in_place) std::fill(input.begin(), input.end(), -1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], call * 1'000'000 + static_cast<int>(i / count) * 100'000 + static_cast<int>(i % count))
          << "call " << call << ", element " << i;
    }
  }
}

TEST(CrossMemory, AllGatherInPlaceAndNot) {
  for (const char* const setting : {"off", "auto", "on"}) {
    ThreadTeam options;
    options.ranks = 3;
    options.algorithm = "node";
    options.settings = std::string("ARENA=1G\nTIMEOUT=10\nCROSS_MEMORY=") + setting;
    run_as_threads(options, [](torii_context*, torii_team* team) { gather_often(team, 40'000); });
  }
}

/// From here on this thread, and those it starts, get EPERM from process_vm_readv().
void forbid_reading() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("seccomp");
    std::_Exit(3);
  }
}

/// 0 when two ranks come to an agreement that is right where reading is forbidden.
int agree_where_forbidden(Switch wanted) {
  forbid_reading();
  std::atomic<int> right = 0;
  try {
    tests::run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
      const shared_memory::Nodes nodes(bootstrap);
      const auto arena = shared_memory::make_arena(bootstrap, nodes, shared_memory::kArenaBytesMin);
      shared_memory::NodePeers peers(bootstrap, nodes, *arena, 10);
      const shared_memory::SharedMemory transport(bootstrap, *arena, peers, 1, wanted);
      right = transport.readable(0) ? 2 : 0;
      gather_values(bootstrap, 0);
    });
  } catch (const Error& error) {
    const std::string text = error.what();
    const bool told = text.find(
                          "TORII_CROSS_MEMORY is on, but rank 0 cannot read the memory of rank 0 (Operation not "
                          "permitted)") != std::string::npos;
    return wanted == Switch::on && error.status() == Status::unsupported && told ? 0 : 1;
  }
  return wanted == Switch::on ? 4 : right.load();
}

TEST(CrossMemory, WhereItIsForbiddenAutoGoesOnAndOnIsRefused) {
  for (const Switch wanted : {Switch::automatic, Switch::on}) {
    // A process of its own: the filter stays for good.
    const pid_t child = fork();
    if (child == 0) std::_Exit(agree_where_forbidden(wanted));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << (wanted == Switch::on ? "on" : "auto");
  }
}

/// The kernel may begin to refuse at any time, as after prctl(PR_SET_DUMPABLE, 0). Here it does so for one rank's
/// thread.
ThreadTeam readers_of(const char* algorithm) {
  ThreadTeam options;
  options.ranks = 2;
  options.algorithm = algorithm;
  options.settings = "ARENA=1G\nTIMEOUT=10\nCROSS_MEMORY=on";
  return options;
}

TEST(CrossMemory, SendsGoOnInPartsWhereReadingIsForbiddenLater) {
  run_as_threads(readers_of(""), [](torii_context*, torii_team* team) {
    constexpr std::size_t kItems = 1'000'003;  // several portions of a read
    const int rank = torii_team_rank(team);
    std::vector<int> sent(kItems);
    std::vector<int> got(kItems);
    for (int round = 0; round < 5; ++round) {
      std::iota(sent.begin(), sent.end(), 7 * round);
      std::fill(got.begin(), got.end(), -1);
      torii_request* request = nullptr;
      if (rank == 0) {
        ASSERT_EQ(torii_start_send(team, sent.data(), kItems, TORII_I32, 1, 0, &request), TORII_OK);
      } else {
        ASSERT_EQ(torii_start_recv(team, got.data(), kItems, TORII_I32, 0, 0, nullptr, &request), TORII_OK);
      }
      int done = 0;
      // Within a message that it has begun to read.
      for (int test = 0; round == 2 && rank == 1 && got[0] != 14 && done == 0; ++test) {
        ASSERT_EQ(torii_test(&request, &done), TORII_OK) << torii_last_error();
      }
      if (round == 2 && rank == 1) forbid_reading();
      ASSERT_EQ(torii_wait(&request), TORII_OK) << torii_last_error() << ", round " << round;
      ASSERT_TRUE(rank == 0 || got == sent) << round;
    }
  });
}

TEST(CrossMemory, CallsSayThatReadingIsForbiddenLater) {
  for (const torii_collective collective : {TORII_ALL_GATHER, TORII_ALLTOALL}) {
    run_as_threads(
        readers_of(collective == TORII_ALL_GATHER ? "node" : "direct"), [&](torii_context*, torii_team* team) {
          constexpr std::size_t kItems = 100'000;
          const std::vector<int> input(2 * kItems, 3);
          std::vector<int> result(2 * kItems);
          if (torii_team_rank(team) == 1) forbid_reading();
          const torii_call call = make_call(collective, input.data(), result.data(), kItems, TORII_I32);
          torii_status status = TORII_OK;
          // Ranks try both ways in their first calls.
          for (int calls = 0; calls < 200 && status == TORII_OK; ++calls) status = torii_run(team, &call);
          EXPECT_EQ(status, TORII_TRANSPORT) << torii_last_error();
          const std::string text = torii_last_error();
          EXPECT_NE(text.find("the transport failed towards rank 0"), std::string::npos) << text;
          EXPECT_NE(text.find("noticed by rank 1"), std::string::npos) << text;
          EXPECT_NE(text.find("the kernel no longer lets it read that rank's memory"), std::string::npos) << text;
          EXPECT_NE(text.find("set TORII_CROSS_MEMORY=off"), std::string::npos) << text;
        });
  }
}

TEST(CrossMemory, ReadsOfWhatIsNotThereFail) {
  tests::run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    const shared_memory::Nodes nodes(bootstrap);
    const auto arena = shared_memory::make_arena(bootstrap, nodes, shared_memory::kArenaBytesMin);
    shared_memory::NodePeers peers(bootstrap, nodes, *arena, 10);
    const shared_memory::CrossMemory memory(bootstrap, peers);
    ASSERT_TRUE(memory.allowed()) << memory.why_not();
    std::byte to[64];
    EXPECT_EQ(memory.read(1 - bootstrap.rank(), 4096, to, sizeof(to)), Status::transport);
    gather_values(bootstrap, 0);
  });
}

}  // namespace
}  // namespace torii::tests
