// SPDX-License-Identifier: Apache-2.0
// The verifier's single checks, each over the step tables of a plan set without faults of structure.
#pragma once

#include "collectives/proof/credit_rules.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/proof/verify_precedence.hpp"
#include "collectives/proof/verify_steps.hpp"

namespace torii::verification {

/// A span of steps during which a rank's result block is written. For a write_in_place stream the sender stores in
/// place at `first`, or by value the receiver's keep stores at `last`; for any other keep the two are one step.
struct ResultWrite {
  std::int32_t rank;
  std::int32_t block;
  StepId first;
  StepId last;
};

/// All writes of results, sorted by rank, block and time (any write before those that must come after it).
std::vector<ResultWrite> result_writes(const StepTable& table, const Precedence& precedence);

/// No result block is overwritten while a rank still reads it; nor is an input block, if both are the same memory.
void check_buffers(const StepTable& table, Precedence& precedence, Faults& faults);

/// Every stream without credits: the dependencies make the producer wait for the slot it will fill. Also that the call
/// of a rank whose operand is read in place outlasts its readers, if no credits tell it so.
void check_implied_credits(const StepTable& table, int slots, Precedence& precedence, Faults& faults);

/// Every stream with credits: nothing that `rules` let a rank send fills a slot whose last message has not been taken.
void check_credits(const StepTable& table, int slots, const CreditRules& rules, Precedence& precedence, Faults& faults);

/// An alltoall that ranks may run as a linear program, which reads and stores in the order of its steps: with input and
/// result the same memory, each block is read before something is stored in its place, so no copy of the input is
/// needed. (check_buffers() proves the same of all other collectives.)
void check_linear_in_place(const PlanRequest& request, const StepTable& table, Faults& faults);

/// Derives the expression of every result and compares; fills `verdict.result_expression`.
void check_data(const PlanRequest& request, const StepTable& table, const Precedence& precedence, ExpressionPool& pool,
                const DeclaredOrder& order, Faults& faults, Verdict& verdict);

/// Barrier: no rank's call ends before all ranks have entered.
void check_barrier(const StepTable& table, const Precedence& precedence, Faults& faults);

/// Height, busiest link and shared links.
void measure_links(const Topology& topology, const StepTable& table, const Precedence& precedence, Verdict& verdict);

}  // namespace torii::verification
