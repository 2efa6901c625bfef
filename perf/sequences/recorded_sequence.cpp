// SPDX-License-Identifier: Apache-2.0
// Reads the calls of a program from a file of text:
//   torii-calls 1
//   ranks 4
//   team 0 1 2 3          teams are numbered from 0 as they come
//   team 0 2
//   12 0 broadcast f64 - 2 100          so many times, team, collective, type, operation, root, count
//   1 1 allreduce f64 sum - 3 in_place
//   1 1 alltoall u8 - - 8,0,16,8        lengths of their own: of each pair, or of each member's block
//   3 0 barrier - - - -
// "-" stands where a collective has none; lines that begin with # and empty ones are passed over.
#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/sequences/sequence.hpp"
#include "runtime/base/excerpt.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/text_file.hpp"

namespace torii::perf {
namespace {

/// More would be no recording of a program, but a file that fills the memory.
constexpr std::size_t kCallsMax = 1'000'000;
/// Counts are ints in MPI.
constexpr std::size_t kCountMax = std::numeric_limits<int>::max();
constexpr std::size_t kBytesMax = std::size_t{1} << 32;

using Words = std::vector<std::string>;

class Reader {
 public:
  Reader(const std::string& path, int ranks) : path_(path), ranks_(ranks) {}

  Sequence read() {
    std::istringstream text(read_text_file(path_, "--recorded"));
    for (std::string line; std::getline(text, line);) {
      ++number_;
      std::istringstream stream(line);
      Words words;
      for (std::string word; stream >> word;) words.push_back(std::move(word));
      if (!words.empty() && words[0][0] != '#') take(words);
    }
    if (!has_ranks_) refuse("has no line 'ranks N'");
    if (sequence_.calls.empty()) refuse("has no calls");
    return std::move(sequence_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Failure(kBadCommandLine, "'" + path_ + "', line " + std::to_string(number_) + ": " + reason);
  }
  std::size_t number(const std::string& word, const char* what, std::size_t end) const {
    const auto value = parse_number<std::size_t>(word);
    if (!value || *value >= end) {
      refuse(std::string(what) + " '" + excerpt(word) + "' is not a number below " + std::to_string(end));
    }
    return *value;
  }

  void take(const Words& words) {
    if (!has_head_) {
      if (words != Words{"torii-calls", "1"}) refuse("the first line is not 'torii-calls 1'");
      has_head_ = true;
    } else if (words[0] == "ranks") {
      if (words.size() != 2) refuse("'ranks' has one number");
      const std::size_t ranks = number(words[1], "ranks", std::numeric_limits<int>::max());
      if (ranks != static_cast<std::size_t>(ranks_)) {
        refuse("was recorded with " + words[1] + " ranks, and there are " + std::to_string(ranks_));
      }
      has_ranks_ = true;
    } else if (words[0] == "team") {
      take_team(words);
    } else {
      take_call(words);
    }
  }

  void take_team(const Words& words) {
    std::vector<int> members;
    for (auto word = words.begin() + 1; word != words.end(); ++word) {
      members.push_back(static_cast<int>(number(*word, "a member", static_cast<std::size_t>(ranks_))));
    }
    if (members.empty()) refuse("a team has no members");
    if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end()) {
      refuse("the members of a team are not in ascending order");
    }
    sequence_.teams.push_back(std::move(members));
  }

  void take_call(const Words& words) {
    if (words.size() != 7 && !(words.size() == 8 && words[7] == "in_place")) {
      refuse("a call is TIMES TEAM COLLECTIVE TYPE OP ROOT COUNTS [in_place]");
    }
    SequenceCall call;
    const std::size_t times = number(words[0], "times", kCallsMax + 1);
    call.team = static_cast<int>(number(words[1], "team", sequence_.teams.size()));
    const std::size_t members = sequence_.teams[static_cast<std::size_t>(call.team)].size();
    const auto collective = parse_collective(words[2]);
    if (!collective) refuse("'" + excerpt(words[2]) + "' is no collective");
    call.collective = *collective;
    if (call.collective != TORII_BARRIER) take_data(words, members, call);
    if (sequence_.calls.size() + times > kCallsMax) {
      refuse("more than " + std::to_string(kCallsMax) + " calls are too many");
    }
    sequence_.calls.insert(sequence_.calls.end(), times, call);
  }

  void take_data(const Words& words, std::size_t members, SequenceCall& call) {
    const std::set<torii_type> known = {TORII_U8, TORII_I32, TORII_I64, TORII_U64, TORII_F32, TORII_F64};
    const auto type = parse_type(words[3]);
    if (!type || !known.contains(*type)) {
      refuse("type '" + excerpt(words[3]) + "' is not one of u8 i32 i64 u64 f32 f64");
    }
    call.type = *type;
    if (combines(call.collective)) {
      const auto op = parse_op(words[4]);
      if (!op || (*op != TORII_SUM && *op != TORII_MIN && *op != TORII_MAX)) {
        refuse("operation '" + excerpt(words[4]) + "' is not one of sum min max");
      }
      call.op = *op;
    }
    if (has_root(call.collective)) call.root = static_cast<int>(number(words[5], "root", members));
    take_counts(split_list(words[6]), members, call);
    const bool may = combines(call.collective) && call.collective != TORII_REDUCE_SCATTER;
    if (words.size() == 8 && !may) refuse("a recorded " + words[2] + " is not in place");
    call.in_place = words.size() == 8;
  }

  void take_counts(const Words& counts, std::size_t members, SequenceCall& call) {
    std::size_t sum = 0;
    for (const std::string& word : counts) sum += number(word, "a count", kCountMax);
    const std::size_t parts = has_blocks(call.collective) && counts.size() == 1 ? members : 1;
    if (sum * info(call.type).size_bytes * parts > kBytesMax) refuse("a call moves more than 4 GiB");
    if (counts.size() == 1) {
      call.count = sum;
      return;
    }
    const bool may = has_blocks(call.collective) && call.collective != TORII_REDUCE_SCATTER;
    if (!may) refuse("the blocks of this collective are equal, so it has one count");
    const std::size_t wanted = call.collective == TORII_ALLTOALL ? members * members : members;
    if (counts.size() != wanted) {
      refuse(std::to_string(counts.size()) + " counts, where it takes 1 or " + std::to_string(wanted));
    }
    for (const std::string& word : counts) call.counts.push_back(static_cast<int>(*parse_number<std::size_t>(word)));
  }

  const std::string& path_;
  int ranks_;
  int number_ = 0;
  bool has_head_ = false, has_ranks_ = false;
  Sequence sequence_;
};

}  // namespace

SequenceSource recorded_sequence(const std::string& path, int ranks) {
  const std::size_t slash = path.rfind('/');
  std::string name = path.substr(slash == std::string::npos ? 0 : slash + 1);
  name = name.substr(0, name.find('.'));
  return {std::move(name), false, 0, 0, [sequence = Reader(path, ranks).read()](int) { return sequence; }};
}

}  // namespace torii::perf
