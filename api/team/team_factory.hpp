// SPDX-License-Identifier: Apache-2.0
// Making teams: of the whole job, of named ranks, of a part, of survivors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/team/team.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// All functions are collective over the future members. A failure on one of them fails all, with that rank's reason.
/// They throw Error.
class TeamFactory {
 public:
  explicit TeamFactory(Context& context) noexcept : context_(context) {}

  /// The team of all ranks of the job.
  std::unique_ptr<Team> make_world(const TeamOptions& options);
  /// The team of `ranks` of the context, in this order. `bootstrap` is theirs.
  std::unique_ptr<Team> make_of(const TeamOptions& options, const std::vector<int>& ranks, Bootstrap& bootstrap);
  /// The same for ranks of this node, which found it by `number` over a board.
  std::unique_ptr<Team> make_numbered(const TeamOptions& options, const std::vector<int>& ranks, std::uint64_t number);
  /// Team::split().
  std::unique_ptr<Team> make_part(Team& parent, int color, int key, const TeamOptions& options);
  /// Team::survivors().
  std::unique_ptr<Team> make_survivors(Team& parent, const TeamOptions& options, const Trouble& trouble);

 private:
  /// The parts of a new team, once all ranks have agreed on them.
  struct Founding {
    TeamOptions options;
    std::vector<Member> members;        ///< none where this rank joins none
    std::optional<Error> refusal = {};  ///< why the members of this part make none, while others make theirs
  };
  TeamOptions with_topology(TeamOptions options, const std::vector<int>& ranks) const;
  void check_not_left_out(const std::vector<int>& ranks) const;
  Founding found(Bootstrap& bootstrap, TeamOptions options, const std::vector<int>& ranks, std::uint64_t memory_offset);
  template <class Choose>
  std::unique_ptr<Team> form(Bootstrap& bootstrap, const TeamOptions& given, int ranks_reserved, bool joins,
                             const Choose& choose);
  static TeamOptions part_options(const Team& parent, const TeamOptions& options, const std::vector<Member>& members);
  std::unique_ptr<Team> agree_on_survivors(Team& parent, const TeamOptions& options, const SurvivorProposal& own,
                                           std::vector<Survivor>& chosen);
  void leave_out_others(const Team& parent, const Team& team, std::vector<int>& left_out) noexcept;
  std::unique_ptr<Team> make_object(Team& parent, const TeamOptions& options, const std::vector<Survivor>& chosen);

  Context& context_;
};

/// `options` with the content of the tree file that `topology` names.
TeamOptions with_tree(TeamOptions options, const std::string& topology);

}  // namespace torii
