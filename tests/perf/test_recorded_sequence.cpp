// SPDX-License-Identifier: Apache-2.0
// Files of recorded calls: what they say, what is refused and with which words, and damaged ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "perf/common/failure.hpp"
#include "perf/sequences/sequence.hpp"
#include "runtime/base/status.hpp"
#include "tests/support/folder_test.hpp"
#include "tests/support/places.hpp"

namespace torii::perf {
namespace {

namespace fs = std::filesystem;

const std::string kGood =
    "torii-calls 1\n"
    "# of a program\n"
    "ranks 4\n"
    "team 0 1 2 3\n"
    "team 1 3\n"
    "12 0 broadcast f64 - 2 100\n"
    "1 1 allreduce f64 sum - 3 in_place\n"
    "\n"
    "1 1 alltoall u8 - - 8,0,16,8\n"
    "2 0 gather i32 - 3 1,2,3,4\n"
    "3 0 barrier - - - -\n";

class RecordedSequence : public tests::FolderTest {
 protected:
  Sequence read(const std::string& text, int ranks = 4) const {
    return recorded_sequence(write("calls.txt", text), ranks).pass(0);
  }
  /// The good text with `line` behind it, or instead of all of it.
  void refuses(const std::string& text, const std::string& reason) const {
    try {
      (void)read(text);
      FAIL() << "taken: " << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.exit_code(), kBadCommandLine);
      EXPECT_NE(std::string(failure.what()).find(reason), std::string::npos) << failure.what();
    }
  }
};

TEST_F(RecordedSequence, SaysWhatItsLinesSay) {
  const Sequence sequence = read(kGood);
  ASSERT_EQ(sequence.teams.size(), 2u);
  EXPECT_EQ(sequence.teams[1], (std::vector<int>{1, 3}));
  ASSERT_EQ(sequence.calls.size(), 12u + 1 + 1 + 2 + 3);
  EXPECT_EQ(sequence.calls[11].collective, TORII_BROADCAST);
  EXPECT_EQ(sequence.calls[11].count, 100u);
  EXPECT_EQ(sequence.calls[11].root, 2);
  EXPECT_EQ(sequence.calls[12].team, 1);
  EXPECT_TRUE(sequence.calls[12].in_place);
  EXPECT_EQ(sequence.calls[13].counts, (std::vector<int>{8, 0, 16, 8}));
  EXPECT_EQ(sequence.calls[15].counts, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(sequence.calls[18].collective, TORII_BARRIER);
}

TEST_F(RecordedSequence, NamesItselfByItsFile) {
  EXPECT_EQ(recorded_sequence(write("solver.calls.txt", kGood), 4).name, "solver");
}

/// perf/programs --record has written them.
TEST_F(RecordedSequence, ReadsTheCallsOfPrograms) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(tests::source_dir()) / "perf" / "recorded")) {
    EXPECT_GT(recorded_sequence(entry.path().string(), 4).pass(0).calls.size(), 500U) << entry.path();
    ++files;
  }
  EXPECT_GT(files, 5);
}

TEST_F(RecordedSequence, RefusesWithTheLineAndTheValue) {
  refuses("", "line 0: has no line 'ranks N'");
  refuses("calls\n", "line 1: the first line is not 'torii-calls 1'");
  refuses("torii-calls 1\nranks 3\n", "line 2: was recorded with 3 ranks, and there are 4");
  refuses("torii-calls 1\nranks 4\n", "has no calls");
  refuses("torii-calls 1\nranks four\n", "ranks 'four' is not a number");
  refuses("torii-calls 1\nranks\n", "'ranks' has one number");
  refuses("torii-calls 1\nteam\n", "a team has no members");
  refuses("torii-calls 1\nteam 1 4\n", "a member '4' is not a number below 4");
  refuses("torii-calls 1\nteam 1 1\n", "not in ascending order");
  for (const auto& [line, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1 0 broadcast f64 - 2", "a call is TIMES TEAM COLLECTIVE TYPE OP ROOT COUNTS [in_place]"},
           {"1 0 broadcast f64 - 2 100 aside", "a call is TIMES"},
           {"2000000 0 barrier - - - -", "times '2000000' is not a number below 1000001"},
           {"1000000 0 barrier - - - -", "more than 1000000 calls are too many"},
           {"1 2 barrier - - - -", "team '2' is not a number below 2"},
           {"1 0 send f64 - - 1", "'send' is no collective"},
           {"1 0 allreduce f16 sum - 1", "type 'f16' is not one of"},
           {"1 0 allreduce f64 prod - 1", "operation 'prod' is not one of sum min max"},
           {"1 1 broadcast f64 - 2 1", "root '2' is not a number below 2"},
           {"1 0 broadcast f64 - 0 1,2", "the blocks of this collective are equal, so it has one count"},
           {"1 0 broadcast f64 - 0 1 in_place", "a recorded broadcast is not in place"},
           {"1 0 alltoall f64 - - 1,2,3,4", "4 counts, where it takes 1 or 16"},
           {"1 0 broadcast f64 - 0 -5", "a count '-5' is not a number"},
           {"1 0 broadcast f64 - 0 1000000000", "moves more than 4 GiB"}}) {
    refuses(kGood + line + "\n", "line 12: ");
    refuses(kGood + line + "\n", reason);
  }
  EXPECT_THROW((void)recorded_sequence(path("none"), 4), Error);
}

/// Damaged files are refused or read; nothing else happens, and what is read stays within its teams.
TEST_F(RecordedSequence, DamagedFilesAreRefusedOrRead) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = kGood;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 9));
      }
      if (text.empty()) text = "\n";
    }
    try {
      const Sequence sequence = read(text);
      for (const SequenceCall& call : sequence.calls) {
        ASSERT_LT(static_cast<std::size_t>(call.team), sequence.teams.size());
        ASSERT_LT(static_cast<std::size_t>(call.root), sequence.teams[static_cast<std::size_t>(call.team)].size());
      }
    } catch (const Failure& failure) {
      ASSERT_EQ(failure.exit_code(), kBadCommandLine);
    }
  }
}

TEST(OwnSequences, AreTheSameOnAllRanksAndDependOnTheSeed) {
  for (const int ranks : {2, 4, 5}) {
    std::vector<SequenceSource> one = own_sequences(ranks, 3, 50), same = own_sequences(ranks, 3, 50),
                                other = own_sequences(ranks, 4, 50);
    int drawn = 0;
    for (std::size_t s = 0; s < one.size(); ++s) {
      const Sequence a = one[s].pass(0), b = same[s].pass(0), c = other[s].pass(0);
      ASSERT_EQ(a.calls.size(), b.calls.size());
      bool differs = false;
      for (std::size_t i = 0; i < a.calls.size(); ++i) {
        EXPECT_EQ(a.calls[i].count, b.calls[i].count) << one[s].name;
        EXPECT_EQ(a.calls[i].counts, b.calls[i].counts) << one[s].name;
        EXPECT_EQ(a.calls[i].root, b.calls[i].root) << one[s].name;
        EXPECT_LT(static_cast<std::size_t>(a.calls[i].root), a.teams[static_cast<std::size_t>(a.calls[i].team)].size());
        differs = differs || a.calls[i].count != c.calls[i].count || a.calls[i].counts != c.calls[i].counts;
      }
      drawn += differs ? 1 : 0;
      if (one[s].is_fresh) {
        EXPECT_FALSE(one[s].pass(1).calls.empty());
      }
    }
    EXPECT_EQ(drawn, 6 + 1 + 4) << ranks;  // blocks of unequal lengths, the random sequence, the mixes
  }
}

}  // namespace
}  // namespace torii::perf
