// SPDX-License-Identifier: Apache-2.0
// The team of members on one node that found it by a number, without an exchange.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "api/agreement/member_names.hpp"
#include "api/agreement/node_founding.hpp"
#include "api/agreement/survivor_messages.hpp"
#include "api/context/founding_boards.hpp"
#include "api/team/founding_memory.hpp"
#include "api/team/options_digest.hpp"
#include "api/team/team_factory.hpp"

namespace torii {
namespace {

static_assert(FoundingFailure::kTextBytes == kRoundTextBytes);

/// A failure with the text that `make` gives.
template <class Make>
FoundingFailure make_failure(Status status, int member, const Make& make) noexcept {
  FoundingFailure failure = {static_cast<std::int32_t>(status), member, {}};
  try {
    std::strncpy(failure.text, std::string(make()).c_str(), FoundingFailure::kTextBytes - 1);
  } catch (const std::exception&) {
    std::strncpy(failure.text, "out of memory for the reason", FoundingFailure::kTextBytes - 1);
  }
  return failure;
}

class Founder final : public NodeFounding::Host {
 public:
  Founder(Context& context, std::uint64_t number, const std::vector<int>& members, int rank) noexcept
      : context_(context), number_(number), members_(members), rank_(rank) {}

  void set_terms(std::int64_t timeout_ns, std::string text) noexcept {
    timeout_ns_ = timeout_ns;
    text_ = std::move(text);
  }
  const std::string& text() const noexcept { return text_; }

  bool lives(int rank) const override { return !has_ended(rank) && !context_.has_left_out(rank); }
  bool has_ended(int rank) const override { return rank != context_.rank() && !context_.transport().alive(rank); }
  void ring(int rank) override {
    const std::atomic<std::uint32_t>* const sleeping = context_.transport().sleeping(rank);
    if (sleeping != nullptr && is_marked(*sleeping)) context_.transport().ring(rank);
  }
  void begin_wait() override {
    waiting_.emplace(context_.transport(), context_.settings().wait, timeout_ns_);
    if (context_.has_idle()) waiting_->serve_others();
  }
  /// Operations of other teams go on meanwhile, as in all waits: another member may be in one.
  bool pause(bool (*still_idle)(void* data), void* data) override {
    if (context_.several_nodes()) (void)context_.transport().progress();
    (void)context_.background().progress(nullptr);
    if (waiting_->is_turn_of_others()) context_.idle();
    return waiting_->pause(still_idle, data);
  }
  bool is_over() const override { return waiting_->is_over(); }
  std::int64_t now_ns() const override { return context_.transport().clock_ns(); }
  std::int64_t late_ns() const override { return now_ns() + timeout_ns_; }

  FoundingFailure lost(int member) const override {
    return make_failure(Status::peer_lost, member, [&] {
      return names(member) + " is lost: no team of number " + std::to_string(number_) + " can be made";
    });
  }
  FoundingFailure late(const MemberSet& absent, bool have_come) const override {
    return make_failure(Status::timeout, absent.lowest(), [&] {
      MemberNames all;
      for (const int member : absent.list()) all.add(member, host_of(member));
      return "no team of number " + std::to_string(number_) + " for " + std::to_string(timeout_ns_ / 1'000'000) +
             (have_come ? " ms; come, but not ready: " : " ms; not come, or not with the same members: ") + all.text();
    });
  }
  FoundingFailure no_room() const override {
    return make_failure(Status::timeout, -1, [&] {
      return "for " + std::to_string(timeout_ns_ / 1'000'000) +
             " ms this rank, the lowest of its members, has been in " +
             std::to_string(context_.boards().opener().entries()) +
             " other foundings of teams by number; make fewer at a time";
    });
  }
  FoundingFailure refusal(const Trouble& trouble) const override {
    return make_failure(trouble.status, rank_,
                        [&] { return "rank " + std::to_string(rank_) + ": " + std::string(trouble.text); });
  }
  FoundingFailure other_members(std::span<const int> of_opener) const override {
    return make_failure(Status::mismatch, rank_, [&] {
      const std::vector<int> theirs(of_opener.begin(), of_opener.end());  // bytes of a peer: read once
      const std::string who = "rank " + std::to_string(context_.rank()) + " of the context names ";
      if (theirs.size() != members_.size()) {
        return who + std::to_string(members_.size()) + " members of the team of number " + std::to_string(number_) +
               ", another rank names " + std::to_string(theirs.size()) + "; all must name the same, in one order";
      }
      const auto at = std::ranges::mismatch(theirs, members_).in1 - theirs.begin();
      if (at == std::ssize(theirs)) return who + "the members that another rank names now, but did not before";
      return who + std::to_string(members_[static_cast<std::size_t>(at)]) + " as member " + std::to_string(at) +
             " of the team of number " + std::to_string(number_) + ", another rank names " +
             std::to_string(theirs[static_cast<std::size_t>(at)]) + "; all must name the same, in one order";
    });
  }
  FoundingFailure other_text(std::string_view theirs) const override {
    return make_failure(Status::mismatch, rank_, [&] {
      const auto lowest = std::ranges::min_element(members_) - members_.begin();
      return difference_text(rank_, text_, static_cast<int>(lowest), std::string(theirs));
    });
  }

 private:
  const std::string& host_of(int member) const { return context_.host(members_[static_cast<std::size_t>(member)]); }
  std::string names(int member) const { return member_text(member, host_of(member)); }

  Context& context_;
  std::uint64_t number_;
  const std::vector<int>& members_;
  int rank_;
  std::int64_t timeout_ns_ = timeout_ns_of(context_.settings().timeout_s);
  std::string text_;  ///< the options and settings to compare
  std::optional<Waiting> waiting_;
};

int number_of(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

std::unique_ptr<Team> TeamFactory::make_numbered(const TeamOptions& given, const std::vector<int>& ranks,
                                                 std::uint64_t number) {
  check_not_left_out(ranks);
  const int rank = number_of(ranks, context_.rank());
  const int opener = static_cast<int>(std::ranges::min_element(ranks) - ranks.begin());
  FoundingMemory memory(context_);
  Founder founder(context_, number, ranks, rank);
  TeamOptions options;
  std::vector<Member> members;
  Trouble trouble;
  trouble.keep([&] {
    options = with_topology(given, ranks);
    members.reserve(ranks.size());
    founder.set_terms(deadline_of(given, context_.settings()), digest_text(context_, given));
    memory.take(static_cast<int>(ranks.size()), shared_channels_of(given, context_.settings()));
  });
  FoundingBoards& boards = context_.boards();
  const FoundingTerms terms = {number, digest_of(founder.text()), founder.text(), ranks, boards.places()};
  NodeFounding founding(founder, terms, rank, opener,
                        boards.of(context_.peers(), ranks[static_cast<std::size_t>(opener)]),
                        rank == opener ? &boards.opener() : nullptr);
  std::unique_ptr<Team> team;
  const auto fail = [&] {
    const FoundingFailure& why = founding.failure();
    return Error(static_cast<Status>(why.status), why.text, why.member);
  };
  if (!founding.come(memory.offset(), trouble)) throw fail();
  trouble.keep([&] {
    const std::size_t bytes =
        team_memory_bytes(static_cast<int>(ranks.size()), shared_channels_of(given, context_.settings()), context_);
    for (int member = 0; member < static_cast<int>(ranks.size()); ++member) {
      const std::uint64_t offset = founding.offset_of(member);
      check_proposal(member, offset, bytes, context_.transport().arena_bytes());
      members.push_back({ranks[static_cast<std::size_t>(member)], offset});
    }
    team.reset(new Team(context_, options, std::move(members), static_cast<int>(ranks.size())));
  });
  if (!founding.settle(trouble)) throw fail();
  memory.release();
  team->owns_memory_ = true;
  return team;
}

}  // namespace torii
