// SPDX-License-Identifier: Apache-2.0
// Joining by TORII_RENDEZVOUS=file:PATH: the file's life, leftovers of earlier jobs, what is not ours.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/bootstrap/rendezvous_file.hpp"
#include "tests/processes/join_job.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

class JoinFile : public FolderTest {
 protected:
  std::string path() const { return folder_ / "meeting"; }
  /// Everything on the loopback.
  Words environment() const { return {"TORII_RENDEZVOUS=file:" + path(), "TORII_INTERFACE=lo", "TORII_TIMEOUT=10"}; }
  void write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path()) << text;
    chmod(path().c_str(), mode);
  }
  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void wait_for_file() const {
    for (const double end_s = now_s() + 10; !fs::exists(path()) && now_s() < end_s;) usleep(1000);
  }
  void expect_success(int ranks, const Words& more = {}) const {
    for (const Outcome& one : run_job(ranks, {"gather"}, environment() + more)) EXPECT_EQ(one.code, 0) << one.output;
    EXPECT_TRUE(fs::is_empty(folder_));
  }
};

TEST_F(JoinFile, RanksMeetAndLeaveNothing) {
  for (const int ranks : {2, 5, 9}) expect_success(ranks);
  expect_success(3, {"TORII_JOB_TOKEN=secret"});
}

TEST_F(JoinFile, AJobOfOneRankNeedsNoFile) {
  const Outcome outcome = run({helper("join_rank"), "gather"}, environment() + Words{"RANK=0", "WORLD_SIZE=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const Outcome nowhere = run({helper("join_rank"), "gather"}, environment());
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_TRUE(holds(nowhere.output, "nothing says which rank this is: set RANK and WORLD_SIZE")) << nowhere.output;
}

TEST_F(JoinFile, OtherLaunchersMayTellTheRank) {
  const auto one = std::make_unique<Process>(Words{helper("join_rank"), "gather"},
                                             environment() + Words{"PMI_RANK=1", "PMI_SIZE=2"});
  const Outcome zero = run({helper("join_rank"), "gather"}, environment() + Words{"SLURM_PROCID=0", "SLURM_NTASKS=2"});
  EXPECT_EQ(zero.code, 0) << zero.output;
  EXPECT_EQ(one->wait().code, 0);
}

TEST_F(JoinFile, OnlyThisUserCanReadIt) {
  const auto zero = start_rank(0, 2, {"gather"}, environment());
  wait_for_file();
  struct stat about {};
  ASSERT_EQ(stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(start_rank(1, 2, {"gather"}, environment())->wait().code, 0);
  EXPECT_EQ(zero->wait().code, 0);
}

TEST_F(JoinFile, WhatAKilledJobLeftIsReplaced) {
  auto zero = start_rank(0, 2, {"gather"}, environment());
  wait_for_file();
  zero->kill(SIGKILL);
  zero->wait();
  ASSERT_TRUE(fs::exists(path()));
  // The next job's rank 1 is there first and reads the leftover.
  const auto one = start_rank(1, 2, {"gather"}, environment());
  usleep(200'000);
  const Outcome outcome = start_rank(0, 2, {"gather"}, environment())->wait();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(one->wait().code, 0);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(JoinFile, ALeftoverThatNamesAnotherJobsPortIsPassedOver) {
  const int port = free_port();
  // Another job waits at the port that the leftover names.
  const auto other = start_rank(0, 2, {"gather"}, meeting_at(port) + Words{"TORII_TIMEOUT=3"});
  ASSERT_TRUE(wait_for_listener(port));
  RendezvousFile leftover;
  leftover.ranks = 2;
  leftover.secret = std::string(64, 'a');
  leftover.addresses.push_back(Address::parse("127.0.0.1", port));
  write(print_rendezvous_file(leftover, ""));
  const auto one = start_rank(1, 2, {"gather"}, environment());
  usleep(200'000);
  EXPECT_EQ(start_rank(0, 2, {"gather"}, environment())->wait().code, 0);
  EXPECT_EQ(one->wait().code, 0);
  EXPECT_TRUE(holds(other->wait().output, "rank 1 has not joined in time"));
}

TEST_F(JoinFile, FilesOfOthersAreLeftAlone) {
  write("my thesis\n");
  const Outcome outcome = start_rank(0, 2, {"gather"}, environment())->wait();
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(holds(outcome.output, "something else than a rendezvous file of this user is there")) << outcome.output;
  EXPECT_EQ(text(), "my thesis\n");
}

TEST_F(JoinFile, WhatOthersCouldReadOrHaveLinkedIsNotRead) {
  RendezvousFile file;
  file.ranks = 2;
  file.secret = std::string(64, 'a');
  file.addresses.push_back(Address::parse("127.0.0.1", 9));
  write(print_rendezvous_file(file, ""), 0644);
  const Words hurried = environment() + Words{"TORII_TIMEOUT=0.3"};
  const Outcome open = start_rank(1, 2, {"gather"}, hurried)->wait();
  EXPECT_EQ(open.code, 4) << open.output;
  EXPECT_TRUE(holds(open.output, "is not a file of this user that nobody else can read")) << open.output;
  fs::rename(path(), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path());
  const Outcome linked = start_rank(1, 2, {"gather"}, hurried)->wait();
  EXPECT_TRUE(holds(linked.output, "cannot be read")) << linked.output;
}

TEST_F(JoinFile, AnotherTokenIsNamedByBothAtTheDeadline) {
  const auto zero = start_rank(0, 2, {"gather"}, environment() + Words{"TORII_JOB_TOKEN=a", "TORII_TIMEOUT=2"});
  wait_for_file();
  const Words other{"TORII_JOB_TOKEN=b", "TORII_TIMEOUT=0.5"};
  const Outcome one = start_rank(1, 2, {"gather"}, environment() + other)->wait();
  EXPECT_EQ(one.code, 4) << one.output;
  EXPECT_TRUE(holds(one.output, "it was made with another job token (TORII_JOB_TOKEN)")) << one.output;
  const Outcome told = zero->wait();
  EXPECT_TRUE(holds(told.output, "error 6 about rank 1: rank 1 has not joined in time")) << told.output;
  EXPECT_TRUE(fs::is_empty(folder_));  // also after a failure
}

TEST_F(JoinFile, PlacesThatCannotBeWrittenAndInterfacesThatAreNotThereAreNamed) {
  const Outcome nowhere =
      start_rank(0, 2, {"gather"},
                 {"TORII_RENDEZVOUS=file:" + (folder_ / "no" / "folder").string(), "TORII_INTERFACE=lo"})
          ->wait();
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_TRUE(holds(nowhere.output, "cannot make a file beside")) << nowhere.output;
  const Outcome none =
      start_rank(0, 2, {"gather"}, {"TORII_RENDEZVOUS=file:" + path(), "TORII_INTERFACE==nosuch"})->wait();
  EXPECT_EQ(none.code, 3);
  EXPECT_TRUE(holds(none.output, "TORII_INTERFACE is '=nosuch', which selects none of the interfaces")) << none.output;
}

TEST_F(JoinFile, PortsAreTakenFromTheRange) {
  const int port = free_port();
  const std::string number = std::to_string(port);
  const auto zero = start_rank(0, 2, {"gather"}, environment() + Words{"TORII_PORTS=" + number + "-" + number});
  ASSERT_TRUE(wait_for_listener(port));
  const Words loopback{"0100007F", "00000000000000000000000001000000"};
  for (const std::string& one : listeners_at(port)) EXPECT_NE(std::ranges::find(loopback, one), loopback.end()) << one;
  const Outcome full = start_rank(0, 2, {"gather"},
                                  {"TORII_RENDEZVOUS=file:" + path() + "2", "TORII_INTERFACE=lo",
                                   "TORII_PORTS=" + number + "-" + number})
                           ->wait();
  EXPECT_EQ(full.code, 3);
  EXPECT_TRUE(holds(full.output, "cannot listen on port " + number + " of 127.0.0.1")) << full.output;
  EXPECT_EQ(start_rank(1, 2, {"gather"}, environment())->wait().code, 0);
  EXPECT_EQ(zero->wait().code, 0);
}

}  // namespace
}  // namespace torii::tests
