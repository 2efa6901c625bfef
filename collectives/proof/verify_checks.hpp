// SPDX-License-Identifier: Apache-2.0
// The verifier's single checks, each over the step tables of a plan set without faults of structure.
#pragma once

#include "collectives/proof/executor_rules.hpp"
#include "collectives/proof/verify.hpp"
#include "collectives/proof/verify_precedence.hpp"
#include "collectives/proof/verify_steps.hpp"

namespace torii::verification {

/// A span of steps during which a rank's result block is written. For a write_in_place stream the sender stores in
/// place at `first`, or by value the receiver's keep stores at `last`. For any other keep the two are one step.
struct ResultWrite {
  std::int32_t rank;
  std::int32_t block;
  StepId first;
  StepId last;
};

/// All writes of results, sorted by rank, block and time (any write before those that must come after it).
std::vector<ResultWrite> result_writes(const StepTable& table, const Precedence& precedence);

/// Whether a step has the rank's own operand as its only source. If it keeps it in place, it writes nothing.
bool keeps_own(const StepTable& table, StepId step);

/// Whether the call of `rank` cannot end before `step` is done.
bool outlasts(const StepTable& table, int rank, StepId step, Precedence& precedence);

/// No result block is overwritten while a rank still reads it; nor is an input block, if both are the same memory.
void check_buffers(const StepTable& table, Precedence& precedence, Faults& faults, Proofs& proofs);

/// The call of a rank whose operand is read in place outlasts its readers: it waits for them, by `rules`, or messages
/// make it wait.
void check_readers(const StepTable& table, const ExecutorRules& rules, Precedence& precedence, Faults& faults);

/// Finds the fewest slots with which nothing deadlocks. As many are left of the plans' slots where a receiver keeps to
/// itself what `rules` let it.
void check_counts(const StepTable& table, int slots, const ExecutorRules& rules, Faults& faults, Verdict& verdict);

/// By `rules`, both ends of a stream use the same ring, and no other stream of the two ranks uses it.
void check_rings(const StepTable& table, const ExecutorRules& rules, Faults& faults, Proofs& proofs);

/// Streams that share a copy of their payload always carry the same value. One step stores the value, and waits for the
/// counts of all of these streams.
void check_shared_payloads(const StepTable& table, const ExecutorRules& rules, Faults& faults, Proofs& proofs);

/// Bytes that engines send from the caller's vectors stay there until the call ends. `exchange`: the pairwise exchange
/// that the plans were written out from, or nullptr.
void check_sent_in_place(const StepTable& table, const ExecutorRules& rules, const PairwiseExchange* exchange,
                         Precedence& precedence, Faults& faults, Proofs& proofs);

/// Operands in private memory are copied, not folded.
void check_private_reads(Collective collective, const StepTable& table, const ExecutorRules& rules, Faults& faults,
                         Proofs& proofs);

/// Ranks for which a peer waits make a buffer offer, and one that is made has been read when its rank's call ends.
void check_offers(const StepTable& table, const ExecutorRules& rules, Precedence& precedence, Faults& faults,
                  Proofs& proofs);

/// Plans that run as linear programs have what those need. In an alltoall they read and store in the order of their
/// steps. With input and result the same memory, each block is read before something is stored in its place, so no copy
/// of the input is needed. (check_buffers() proves the same of all other collectives.)
void check_lists(const PlanRequest& request, const StepTable& table, const ExecutorRules& rules, Faults& faults,
                 Proofs& proofs);

/// The steps of two ranks of a pairwise exchange for a block without slots. They are buffer offers in turn, parts with
/// one signal or one release, and the ends of their calls.
void check_transfers(const ExecutorRules& rules, Faults& faults);

/// Derives the expression of every result and compares; fills `verdict.result_expression`.
void check_data(const PlanRequest& request, const StepTable& table, const Precedence& precedence, ExpressionPool& pool,
                const DeclaredOrder& order, Faults& faults, Verdict& verdict);

/// Barrier: no rank's call ends before all ranks have entered.
void check_barrier(const StepTable& table, const Precedence& precedence, Faults& faults);

/// Height, busiest link and shared links.
void measure_links(const Topology& topology, const StepTable& table, const Precedence& precedence, Verdict& verdict);

}  // namespace torii::verification
