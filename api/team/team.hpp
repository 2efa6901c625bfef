// SPDX-License-Identifier: Apache-2.0
// An ordered set of ranks with a topology: selection, plans in place, channels, waiting, failures.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/context/context.hpp"
#include "api/team/call_history.hpp"
#include "api/team/inside.hpp"
#include "api/team/last_error.hpp"
#include "api/team/membership.hpp"
#include "api/team/plan_cache.hpp"
#include "api/team/plan_maker.hpp"
#include "api/team/refused_calls.hpp"
#include "api/team/request.hpp"
#include "api/team/staging_budget.hpp"
#include "api/team/start_waits.hpp"
#include "api/team/team_agreement.hpp"
#include "api/team/team_control.hpp"
#include "api/team/team_options.hpp"
#include "runtime/execution/execution.hpp"
#include "runtime/execution/waiting.hpp"

namespace torii {

class Team final : public AttachedTeam, private StartWaits {
 public:
  /// The team of all ranks of the job. Collective. Throws Error.
  static std::unique_ptr<Team> make_world(Context& context, const TeamOptions& options);
  /// The team of `ranks` of the context, in this order. Collective over them; `exchange` is theirs. Throws Error on
  /// all.
  static std::unique_ptr<Team> make_of(Context& context, const TeamOptions& options, const std::vector<int>& ranks,
                                       Exchange& exchange);
  /// Ranks of equal colour, ordered by (key, rank); nullptr for colour -1. Collective over this team.
  std::unique_ptr<Team> split(int color, int key, const TeamOptions& options);
  /// For split(): Exchange::decide() over this team's members.
  bool decide_split(bool agreed);
  /// The living members of a poisoned team. Collective over them.
  std::unique_ptr<Team> survivors(const TeamOptions& options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int rank() const noexcept { return members_.rank(); }
  int ranks() const noexcept { return members_.ranks(); }
  Context& context() noexcept { return context_; }
  const Topology& topology() const noexcept { return maker_.topology(); }

  /// Reads the request's lengths, checks the call and finds or makes what can be prepared. nullptr with last_error()
  /// set, and the status.
  Prepared* prepare(Request& request, Status& status) noexcept;
  /// Starts or queues. The request must stay where it is until it is done.
  Status submit(Request& request) noexcept;
  /// A channel of its own for a persistent operation; collective.
  Status open_channel(Request& request) noexcept;
  /// Gives the channel to the next persistent operation. Collective in the sense of order only: nobody waits.
  void close_channel(const Request& request) noexcept;
  Status wait(Request& request) noexcept;
  /// submit() and wait().
  Status run(Request& request) noexcept;
  /// run() for a call like the last one, which is what programs make most: it has been checked and prepared, so only
  /// the buffers are new. False where it is not, or where other operations are in flight: run() then does it. (An
  /// optional status would come back through memory, written as two words and read as one, which processors wait for.)
  bool run_again(const PlainCall& call, Status& status) noexcept;
  /// True when the request is done; moves this team's operations once.
  bool test(Request& request) noexcept;
  /// Callers that leave the operation in flight say so, that others may move it meanwhile; and again when it is done.
  void enter_background();
  void leave_background_when_idle();

  void abort(const std::string& reason) noexcept;
  /// Sets last_error() to why the team failed: for requests that ended with the team, before anybody waited for them.
  void tell_cause() const noexcept { set_last_error(cause_); }
  /// A call was refused, for this reason, before it came to submit(), run() or open_channel(), which count what they
  /// refuse themselves. It counts as this rank's call: the team fails if other ranks made that call.
  void count_refusal(const char* reason) noexcept;
  std::uint64_t engine_bytes(int engine) const noexcept override;
  /// The most entries of any operation of this rank. From any thread.
  int entries_in_flight_most() const noexcept;
  bool progress_in_background() noexcept override;

 private:
  struct Channel {
    explicit Channel(Transport& transport) : execution(transport) {}
    Execution execution;
    Request* current = nullptr;
    std::uint64_t awaited = 0;  ///< the installation on which members have to agree before `current` begins; 0: none
    int agreed_members = 0;     ///< so many members, from the first on, agree on it
    std::uint64_t starts = 0;   ///< of persistent operations on this channel
    std::deque<Request*> queue;
  };

  Team(Context& context, const TeamOptions& options, std::vector<Member> members, int ranks_reserved);
  /// The parts of a new team, once all ranks have agreed on them.
  struct Founding {
    TeamOptions options;
    std::vector<Member> members;        ///< none where this rank joins none
    std::optional<Error> refusal = {};  ///< why the members of this part make none, while others make theirs
  };
  static Founding found(Context& context, Exchange& exchange, TeamOptions options, const std::vector<int>& ranks,
                        std::uint64_t memory_offset);
  template <class Choose>
  static std::unique_ptr<Team> form(Context& context, Exchange& exchange, int ranks_reserved, bool joins,
                                    const Choose& choose);
  /// `options` with the content of the tree file that they name.
  static TeamOptions with_own_tree(const TeamOptions& options);
  TeamOptions part_options(const TeamOptions& options, const std::vector<Member>& members) const;

  // team_operations.cpp: channels and requests.
  Status start(Request& request) noexcept;
  Status make_ready(Request& request) noexcept;
  Status take_channel(Request& request) noexcept;
  void start_on(Channel& channel, Request& request) noexcept;
  void begin(Channel& channel, Request& request) noexcept;
  bool advance(Channel& channel) noexcept;
  bool progress_channels() noexcept;
  bool progress() noexcept;
  void complete(Channel& channel, Status status) noexcept;
  void write_board(const Prepared& prepared, std::uint64_t kind, std::uint64_t sequence) noexcept;
  CallBuffers buffers_of(const Request& request, bool by_value) const noexcept;
  bool copy_input(Request& request) noexcept;
  Status take_blocks(Request& request) noexcept;
  void take_place(Request& request) noexcept;
  // team_lengths.cpp: blocks of unequal lengths that travel by flows.
  void begin_lengths(Channel& channel, Request& request) noexcept;
  void take_lengths(Request& request);
  void begin_blocks(Channel& channel, Request& request) noexcept;
  CallBuffers block_buffers(const Request& request) const noexcept;
  // team_again.cpp
  bool is_again(const PlainCall& call) const noexcept;
  Status go_on(Prepared& prepared, std::size_t channel, const PlainCall& call, std::uint32_t salt) noexcept;
  static bool still_idle(void* team) noexcept;
  Status run_to_end(Request& request) noexcept;
  Status wait_until_done(Request& request) noexcept;

  // team_refusals.cpp: calls that this rank refused.
  void note_refusal(std::uint64_t sequence, const char* reason) noexcept;
  Status check_refusals(std::uint64_t own_sequence);
  Status fail_refused(int member, const RefusalNotice& notice);
  std::string refusals_text(int member);

  // team_installs.cpp: agreement on the plans in place.
  bool is_agreed(Channel& channel) noexcept;
  Status check_installs(const Waiting& waiting, const Request& request);
  void wait_for(int member, const std::string& purpose, const std::function<bool()>& is_there) override;
  void finish_all() override;

  // team_failure.cpp: what ends a call before its time.
  Status check(const Waiting& waiting, const Request& request) noexcept;
  Status check_lives(const Waiting& waiting, const Request& request, std::int64_t now);
  bool has_left_after(int member, const Request& request) noexcept;
  Status check_board(const Request& request);
  Status compare_calls(int member, const Request& request, std::uint64_t sequence);
  Standing next_told(const Request& request) noexcept;
  Status fail(Status status, int member, const std::string& text) noexcept;
  Status adopt_failure() noexcept;
  Standing standing(const Request& request) noexcept;
  std::string phase_text(const Request& request) const;
  Status fail_timeout(const Waiting& waiting, const Request& request);
  void fail_transport(const Execution& execution, const Request& request) noexcept;

  // team_survivors.cpp
  void wait_until_made(const std::vector<Survivor>& chosen);

  Context& context_;
  std::size_t shared_channels_;
  Membership members_;
  TeamControl* own_control_;
  std::unique_ptr<TeamAgreement> agreement_;
  FailureSign failed_;
  StagingBudget staging_;
  PlanMaker maker_;
  PlanCache plans_;
  std::vector<std::unique_ptr<Channel>> channels_;  ///< the shared ones, then those of persistent operations
  mutable std::mutex channels_mutex_;               ///< held while channels_ grows, and by readers on other threads
  std::vector<int> free_channels_;                  ///< of persistent operations that are gone, ascending
  Waiting polling_;                                 ///< of callers that test instead of wait
  Prepared* last_prepared_ = nullptr;
  std::uint64_t sequence_ = 0;  ///< of the last call, made or refused; persistent operations count when prepared
  CallHistory history_;
  RefusedCalls refused_;
  std::size_t next_channel_ = 0;  ///< of the next call: the shared channels in turn
  int in_flight_ = 0;
  bool in_background_ = false;
  std::atomic_flag busy_;         ///< held while a caller or a background mover is inside; used only in the background
  bool moved_by_others_ = false;  ///< in the background, since the caller's last test; with busy_ held
  std::string cause_;             ///< why the team failed, once it is poisoned
  Status cause_status_ = Status::ok;
  bool poisoned_ = false;  ///< the failure has been reported by a call of this rank
  bool survivors_made_ = false;
  bool tells_call_in_order_ = false;  ///< next_told()
  bool owns_memory_ = false;  ///< all members have made their object: until then nobody puts, and nobody departs
  std::int64_t alive_checked_ns_ = 0;
};

/// Of everything that must be equal on all members.
std::uint64_t options_digest(Context& context, const TeamOptions& options);

/// How often a blocking call looks at its own operation before it waits for good.
inline constexpr int kQuickPolls = 30;

}  // namespace torii
