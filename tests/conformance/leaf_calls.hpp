// SPDX-License-Identifier: Apache-2.0
// Calls over leaves in all their forms.
#pragma once

#include <torii/torii.h>

#include <string>

#include "tests/conformance/combine.hpp"
#include "tests/conformance/leaf_data.hpp"
#include "tests/conformance/thread_team.hpp"

namespace torii::tests {

inline ThreadTeam leaf_team(int ranks, const std::string& settings = "") {
  ThreadTeam options;
  options.ranks = ranks;
  options.settings = "ARENA=256M\nTIMEOUT=30\n" + settings;
  return options;
}

/// The leaves that a rank writes when it is asked for them.
struct Writing {
  torii_type type;
  std::size_t elements;
  std::size_t next = 0;
  static int write(std::size_t leaf, void* out, void* data) {
    auto& self = *static_cast<Writing*>(data);
    EXPECT_EQ(leaf, self.next++) << "leaves are written in ascending order";
    fill_leaf(self.type, leaf, 0, self.elements, out);
    return 0;
  }
};

/// What is called: the same bits in each form.
struct Form {
  bool is_written = false;      ///< by a function; otherwise an array
  bool is_spread = false;       ///< the array has gaps
  bool is_started = false;      ///< torii_start; otherwise torii_run
  bool may_be_refused = false;  ///< by a forced algorithm that cannot serve the intervals
};
inline constexpr Form kForms[] = {{},
                                  {.is_spread = true},
                                  {.is_written = true},
                                  {.is_spread = true, .is_started = true},
                                  {.is_written = true, .is_started = true}};

/// The result of this rank; empty where it has none, or where no algorithm of the team serves the call.
inline Bytes sum(torii_team* team, const Leaves& leaves, torii_call call, Form form) {
  const auto ranks = static_cast<std::size_t>(torii_team_ranks(team));
  const std::size_t elements = call.collective == TORII_REDUCE_SCATTER ? call.count * ranks : call.count;
  const std::size_t stride = form.is_spread ? elements + 13 : elements;
  const Bytes input = leaves.vectors(call.type, elements, stride);
  Bytes result(call.count * torii_type_bytes(call.type));
  Writing writing = {call.type, elements, leaves.first()};
  call.leaves = leaves.get();
  call.input = form.is_written ? nullptr : input.data();
  call.result = result.data();
  call.leaf_stride = form.is_spread ? stride : 0;
  if (form.is_written) call.leaf = Writing::write;
  call.leaf_data = &writing;
  torii_choice choice = {};
  choice.size = sizeof(choice);
  const torii_status chosen = torii_choose(team, &call, &choice);
  if (chosen == TORII_UNSUPPORTED && form.may_be_refused) return {};
  EXPECT_EQ(chosen, TORII_OK) << torii_last_error();
  const Bytes before = input;
  EXPECT_EQ(run_as(form.is_started ? CallForm::started : CallForm::blocking, team, call), TORII_OK)
      << torii_last_error();
  EXPECT_TRUE(same_bytes(before, input)) << "the leaves were written";
  if (form.is_written) {
    EXPECT_EQ(writing.next, leaves.first() + leaves.count());
  }
  if (call.collective == TORII_REDUCE && torii_team_rank(team) != call.root) return {};
  return result;
}

}  // namespace torii::tests
