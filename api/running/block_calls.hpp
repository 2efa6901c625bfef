// SPDX-License-Identifier: Apache-2.0
// Blocking calls of unequal blocks whose plan is known.
#pragma once

#include <memory>

#include "api/agreement/membership.hpp"
#include "api/installation/plan_cache.hpp"
#include "api/running/begun_call.hpp"

namespace torii {

/// Starts a plain pairwise exchange of unequal blocks at once, whatever their lengths, and keeps the memory for these.
class BlockCalls {
 public:
  /// The arguments must outlive this.
  BlockCalls(const Membership& members, const FailureSign& failed, PlanCache& plans, const TeamCalls& team) noexcept
      : members_(members), failed_(failed), plans_(plans), team_(team) {}

  /// False for a call that Operations::run() has to make: a call that waits for others, or that has no call of its kind
  /// before it. Also false for an alltoall in place, which needs a copy of its input, and for any call that is to be
  /// refused.
  bool run(const CallArguments& arguments, Status& status) noexcept;

 private:
  bool begin(const CallArguments& arguments, Status& status) noexcept;
  bool read(const CallArguments& arguments) noexcept;

  const Membership& members_;
  const FailureSign& failed_;
  PlanCache& plans_;
  TeamCalls team_;
  std::unique_ptr<UnequalBlocks> blocks_;  ///< nullptr before the first call
};

}  // namespace torii
