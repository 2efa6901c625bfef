// SPDX-License-Identifier: Apache-2.0
// One way of making the calls of a sequence: by torii or by MPI, each with teams and vectors of its own.
#pragma once

#include <torii/torii.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "perf/common/job.hpp"
#include "perf/common/measure.hpp"
#include "perf/mpi_calls.hpp"
#include "perf/sequences/sequence.hpp"

namespace torii::perf {

/// Elements of an input and of a result.
struct Extent {
  std::size_t input = 1, result = 1;
};

/// The vectors of one type. Inputs are small integers, so that every order of sums is exact. The result has not been
/// touched when the first call writes to it.
class TypedVectors {
 public:
  TypedVectors(torii_type type, int rank, Extent extent);
  const Extent& extent() const { return extent_; }
  void* input() { return input_.data(); }
  void* result() { return result_.get(); }
  const void* result() const { return result_.get(); }
  /// Writes what both ways have in the result before a checked call.
  void spoil(std::size_t elements);

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  torii_type type_;
  int rank_;
  Extent extent_;
  std::vector<std::byte> input_;
  std::unique_ptr<void, Free> result_;
};

class SequenceWay : public Subject {
 public:
  SequenceWay(const Job& job, SequenceSource& source) : job_(job), source_(source) {}
  /// Makes the calls of the next pass ready.
  void next_pass();
  void prepare(int /*i*/) override {}
  torii_status call() override;
  // MPI moves what a rank still owes to others only within calls of MPI.
  void settle() override { Mpi::barrier(); }

  std::size_t calls() const { return sequence_.calls.size(); }
  /// Whether this rank takes part in call i.
  bool takes_part(std::size_t i) const { return at_[i] >= 0; }
  /// Makes call i of the last pass alone, into a spoilt result.
  void make_one(std::size_t i);
  /// Bytes of this rank's result of call i in which two ways differ, or that were written behind it.
  std::size_t count_different(std::size_t i, const SequenceWay& other) const;

 protected:
  /// A call as this rank makes it.
  struct Bound {
    torii_call call{};
    std::size_t team = 0;
    std::array<std::vector<std::size_t>, 4> lengths;  ///< input's counts and displacements, result's
    std::array<std::vector<int>, 4> ints;
    MpiCounts counts{};
    bool unequal = false;
    bool in_place = false;
    bool has_result = true;
    bool is_checked = true;  ///< MPI leaves open what rank 0's result of an exscan is
    Extent extent;
  };
  const Job& job() const { return job_; }
  const Sequence& sequence() const { return sequence_; }

 private:
  virtual void make_teams() = 0;
  virtual torii_status run(const Bound& bound) = 0;
  void bind(const SequenceCall& call);
  void bind_unequal(const SequenceCall& call, int member, Bound& bound);
  void make_vectors();
  void set_addresses(Bound& bound);

  const Job& job_;
  SequenceSource& source_;
  int passes_ = 0;
  Sequence sequence_;
  std::vector<Bound> bound_;        ///< of this rank
  std::vector<std::ptrdiff_t> at_;  ///< of each call of the sequence in bound_; -1: this rank is not in its team
  std::map<torii_type, TypedVectors> vectors_;
};

/// In a context of its own, so that the first pass finds nothing that an earlier sequence has left.
class ToriiWay final : public SequenceWay {
 public:
  ToriiWay(const Job& job, SequenceSource& source);
  ~ToriiWay() override;
  ToriiWay(const ToriiWay&) = delete;
  ToriiWay& operator=(const ToriiWay&) = delete;
  torii_context* context() const { return context_; }

 private:
  void make_teams() override;
  torii_status run(const Bound& bound) override { return torii_run(teams_[bound.team], &bound.call); }

  torii_context* context_ = nullptr;
  std::vector<torii_team*> teams_;
};

/// On communicators of its own.
class MpiWay final : public SequenceWay {
 public:
  using SequenceWay::SequenceWay;
  ~MpiWay() override;
  MpiWay(const MpiWay&) = delete;
  MpiWay& operator=(const MpiWay&) = delete;

 private:
  void make_teams() override;
  torii_status run(const Bound& bound) override {
    return Mpi::run(bound.call, groups_[bound.team], bound.unequal ? &bound.counts : nullptr);
  }

  std::vector<MpiGroup> groups_;
};

}  // namespace torii::perf
