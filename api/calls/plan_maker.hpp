// SPDX-License-Identifier: Apache-2.0
// From a call to all that does not depend on its buffers: checks, selection, layout, kernel.
#pragma once

#include <cstddef>
#include <memory>

#include "api/agreement/membership.hpp"
#include "api/calls/call_class.hpp"
#include "api/calls/call_description.hpp"
#include "api/calls/call_plan.hpp"
#include "api/calls/team_options.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/base/tuned_constants.hpp"
#include "runtime/topology/topology.hpp"

namespace torii {

/// The choices of a team's options. Equal calls on all members give plans that fit together.
class PlanMaker {
 public:
  /// Plans use standing rings of these sizes. Throws Error{invalid_argument} for options that make no sense. `members`
  /// must outlive the maker.
  PlanMaker(const Membership& members, const TeamOptions& options, const RingSizes& rings);

  const Topology& topology() const noexcept { return rules_.topology; }
  /// Checks a call, and finds its class so far as that does not depend on its length. Throws Error{invalid_argument}
  /// for a call that cannot be made.
  ClassKey key_of(const CallDescription& call) const;
  /// The bytes of the call's vector as its layout counts them.
  std::size_t vector_bytes(const CallSpec& spec, const ClassKey& key) const noexcept;
  /// Selects and plans: what takes long. Throws Error{unsupported} for a call that no algorithm serves, and as
  /// fitting_plan().
  std::unique_ptr<CallClass> make_class(const CallSpec& spec, const ClassKey& key) const;
  /// The same, or what a team that chooses alike has made. Classes with leaves are a team's own.
  std::unique_ptr<CallClass> share_class(const CallSpec& spec, const ClassKey& key) const;
  /// A call plan of the class, to be filled in. Throws Error{unsupported}.
  std::unique_ptr<CallPlan> blank(const CallSpec& spec, const CallClass& its_class) const;
  /// Fills in a call plan of the class that nobody uses. Throws Error{invalid_argument}.
  void fill(CallPlan& call_plan, const CallDescription& call) const;
  /// Fills in a plain call plan for another length, between count_least and count_most.
  void set_count(CallPlan& call_plan, std::size_t count) const noexcept;
  /// All of these, for one call. Throws Error{invalid_argument | unsupported} for a call that cannot be made.
  std::unique_ptr<CallPlan> make(const CallDescription& call) const;

 private:
  /// At `run` rows may combine in any order; but all rows combine scans in the order of ranks.
  static bool is_ordered(const CallSpec& spec) noexcept {
    return spec.has(CallMark::ordered) && !is_prefix(spec.collective);
  }
  Determinism determinism_of(const CallSpec& spec) const noexcept {
    return spec.has(CallMark::leaves) || is_ordered(spec) ? Determinism::canonical : rules_.determinism;
  }
  bool sums_travel_as_float(const CallSpec& spec) const noexcept;
  bool runs_as_float(const CallSpec& spec) const noexcept;
  std::size_t own_element_bytes(const CallSpec& spec) const noexcept;
  PlanRequest request_of(const CallSpec& spec, const ClassKey& key) const;
  Selected select_for(const CallSpec& spec, const PlanRequest& request, std::size_t total_bytes) const;
  std::unique_ptr<CallPlan> make_lengths(const CallSpec& spec, const CallClass& its_class) const;
  void set_lengths(CallPlan& call_plan) const;

  const Membership& members_;
  const std::shared_ptr<KnownClasses> known_;
  const ChoiceRules& rules_;
};

/// The length that selection assumes for blocks of unequal lengths: more than any vector has.
inline constexpr std::size_t kUnequalBytes = static_cast<std::size_t>(-1);

/// The bytes of one element as the caller has it.
std::size_t element_bytes_of(const CallSpec& spec) noexcept;
/// The least power of two not below `bytes`. A user's element counts with this size when vectors are divided, so that
/// no boundary of blocks, segments or granules cuts an element. Predefined types are powers of two already.
std::size_t unit_bytes_of(std::size_t bytes) noexcept;

/// The plan of `rank`, with no more slots than rings have entries, and segments made shorter until it can use the
/// rings. Bits do not depend on either. Equal on all ranks. Throws Error{no_resource} if it cannot use them at all.
Plan fitting_plan(Selected& selected, int rank, std::size_t unit_bytes, Widening widening, const RingSizes& rings);

/// Vectors from this size on are stored past the caches: they would evict what the next segments need.
inline constexpr auto kNonTemporalBytes = tuned<std::size_t>("stores.non_temporal_bytes");

}  // namespace torii
