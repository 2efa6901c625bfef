// SPDX-License-Identifier: Apache-2.0
// The members of a team, and the place of each member's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/agreement/team_control.hpp"
#include "api/context/context.hpp"
#include "runtime/fabric/transport.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {

struct Member {
  int context_rank = 0;
  std::uint64_t memory_offset = 0;  ///< of the team's memory in the member's arena
};

/// The members never change. All functions may be called from any thread.
class Membership {
 public:
  /// The context must outlive the team. `timeout_ns`: how long a wait without progress may last.
  Membership(Context& context, std::vector<Member> members, std::int64_t timeout_ns);

  Context& context() const noexcept { return context_; }
  Transport& transport() const noexcept { return context_.transport(); }
  const std::vector<Member>& all() const noexcept { return members_; }
  const Member& at(int member) const noexcept { return members_[static_cast<std::size_t>(member)]; }
  const Member& own() const noexcept { return at(rank_); }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return static_cast<int>(members_.size()); }
  bool several_nodes() const noexcept { return several_nodes_; }
  /// Those that this rank had closed before the team was made: it has put nothing of the team through them.
  std::uint32_t engines_closed_before() const noexcept { return engines_closed_before_; }
  /// Between nodes: lets what members have told arrive.
  void take_messages() const noexcept {
    if (several_nodes_) (void)transport().progress();
  }
  /// -1 for a rank of the context that is no member.
  int member_of(int context_rank) const noexcept;
  /// True for a member of another node.
  bool is_distant(int member) const noexcept;
  bool lives(int member) const { return member == rank_ || is_alive(member); }
  /// False for a member that is dead, or left out of the context.
  bool is_alive(int member) const { return transport().alive(at(member).context_rank) && !is_left_out(member); }
  bool is_left_out(int member) const { return context_.has_left_out(at(member).context_rank); }
  /// False for a member whose end is proved.
  bool may_live(int member) const { return member == rank_ || transport().may_live(at(member).context_rank); }
  /// For members of this rank's node only.
  TeamControl& control(int member) const noexcept;
  TeamControl& control() const noexcept { return *own_control_; }

  /// How long a wait without progress may last.
  std::int64_t timeout_ns() const noexcept { return timeout_ns_; }
  /// A new wait for members, with this limit or another one.
  Waiting waiting() const noexcept { return waiting(timeout_ns_); }
  Waiting waiting(std::int64_t timeout_ns) const noexcept { return {transport(), wait_mode_, timeout_ns}; }

  const std::string& host(int member) const { return context_.host(at(member).context_rank); }
  /// "rank 3 on host a".
  std::string text(int member) const;
  /// "rank 3 on host a, rank 5 on host b and 9 more".
  std::string text(const std::vector<int>& members) const;

 private:
  Context& context_;
  std::vector<Member> members_;
  int rank_;
  bool several_nodes_ = false;
  std::uint32_t engines_closed_before_;
  TeamControl* own_control_;
  WaitMode wait_mode_;
  std::int64_t timeout_ns_;
};

}  // namespace torii
