// SPDX-License-Identifier: Apache-2.0
// Reads the members of a team, and lets them exchange by the embedder's function.
#include "api/team/members.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "api/team/team_factory.hpp"
#include "runtime/base/status.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {
namespace {

/// The embedder's all-gather among the members.
class MembersBootstrap final : public Bootstrap {
 public:
  MembersBootstrap(int rank, const torii_team_options& options) : rank_(rank), options_(options) {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return options_.member_count; }
  bool may_fail_alone() const noexcept override { return true; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    call_exchange(options_.exchange, options_.exchange_data, rank_, mine, all,
                  "the exchange function of the team's members");
  }

 private:
  int rank_;
  const torii_team_options& options_;
};

std::vector<int> read_members(const torii_team_options& options, const Context& context) {
  if (options.member_count < 1 || options.member_count > kTeamRanksMax) {
    invalid("member_count is " + std::to_string(options.member_count) + "; it must be from 1 to " +
            std::to_string(kTeamRanksMax));
  }
  if (options.exchange == nullptr && options.number == 0) {
    invalid("members are named, but exchange is NULL and number is 0: one of them lets the members find each other");
  }
  std::vector<int> members(options.members, options.members + options.member_count);
  std::vector<int> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0 || sorted.back() >= context.ranks()) {
    invalid("members go from " + std::to_string(sorted.front()) + " to " + std::to_string(sorted.back()) +
            "; they must be ranks of the context, from 0 to " + std::to_string(context.ranks() - 1));
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) invalid("rank " + std::to_string(*twice) + " is a member twice");
  if (!std::binary_search(sorted.begin(), sorted.end(), context.rank())) {
    invalid("this rank, " + std::to_string(context.rank()) + ", is not among the members");
  }
  return members;
}

}  // namespace

std::unique_ptr<Team> make_team(Context& context, const torii_team_options& given, const TeamOptions& options) {
  if (given.members == nullptr) {
    if (given.number != 0) invalid("number is set, but members is NULL; it is for teams of named members");
    return TeamFactory(context).make_world(options);
  }
  const std::vector<int> members = read_members(given, context);
  if (given.number != 0) {
    const auto is_here = [&](int member) { return context.nodes().is_own(member); };
    if (std::all_of(members.begin(), members.end(), is_here)) {
      return TeamFactory(context).make_numbered(options, members, given.number);
    }
    if (given.exchange == nullptr) {
      throw Error(Status::unsupported,
                  "number is set and exchange is NULL, but the members are on several nodes; set exchange too");
    }
  }
  const auto rank = std::find(members.begin(), members.end(), context.rank()) - members.begin();
  MembersBootstrap bootstrap(static_cast<int>(rank), given);
  return TeamFactory(context).make_of(options, members, bootstrap);
}

}  // namespace torii
