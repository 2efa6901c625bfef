// SPDX-License-Identifier: Apache-2.0
// An ordered set of ranks with a topology: selection, plans in place, channels, waiting, failures.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/context/context.hpp"
#include "api/team/call_history.hpp"
#include "api/team/inside.hpp"
#include "api/team/install_log.hpp"
#include "api/team/membership.hpp"
#include "api/team/refused_calls.hpp"
#include "api/team/team_agreement.hpp"
#include "api/team/team_control.hpp"
#include "collectives/selection/selection.hpp"
#include "runtime/execution/execution.hpp"
#include "runtime/execution/waiting.hpp"

namespace torii {

/// The text behind torii_last_error(), of the calling thread.
void set_last_error(const std::string& text) noexcept;
const char* last_error() noexcept;

/// How a team is made; empty texts and 0 stand for the context's settings.
struct TeamOptions {
  std::string topology;
  std::string algorithm;
  std::string determinism;
  std::string wire;
  std::size_t segment_bytes = 0;
  std::string tune_table;       ///< JSON
  std::string rank_map = {};    ///< text for with_rank_map(); of the team of all ranks, empty: the setting's
  std::string tree = {};        ///< what stands in the file of topology tree:FILE; set by the team
  std::string tree_error = {};  ///< why it could not be read
  int channels = 0;
};

/// One call as the user wrote it. `user` may point to a temporary: submit() copies it.
struct CallArguments {
  Collective collective = Collective::barrier;
  const void* input = nullptr;
  void* result = nullptr;
  std::size_t count = 0;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  kernels::UserFunction user;
  bool is_internal = false;  ///< the library's own call: a forced algorithm need not be able to serve it
  std::uint32_t tag = 0;     ///< of the library's own: calls that differ in it are not the same call
  bool unequal = false;      ///< blocks have lengths of their own; the arrays are read once, by read_blocks()
  const std::size_t* input_counts = nullptr;
  const std::size_t* input_displacements = nullptr;
  const std::size_t* result_counts = nullptr;
  const std::size_t* result_displacements = nullptr;
  /// reduce_scatter with blocks of unequal lengths: that of each rank's block, equal on all ranks; `count` is their
  /// sum.
  const std::size_t* block_counts = nullptr;
  Access access = {};  ///< broadcast: with functions, they move the vector, and `result` is not looked at
};

/// Collectives whose blocks may have lengths of their own. A reduce_scatter runs the plan for equal blocks over another
/// layout, since all ranks know all lengths; so does a scatter or gather by a plan of flows, once the root has told
/// them. The others run as sweeps: an all_gather as an alltoall that has the same block for everybody.
constexpr bool may_be_unequal(Collective collective) {
  return is_personalised(collective) || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

/// What a board has for the count of a call whose blocks have lengths of their own.
inline constexpr std::uint64_t kUnequalOnBoard = UINT64_MAX;
inline std::uint64_t count_on_board(const CallArguments& arguments) noexcept {
  return arguments.unequal || arguments.block_counts != nullptr ? kUnequalOnBoard : arguments.count;
}

/// The blocks of a call with lengths of their own, and how far its buffers reach.
struct UnequalBlocks {
  SweepBlocks blocks;
  std::size_t input_bytes = 0;
  std::size_t result_bytes = 0;
  /// Of a scatter or gather that runs as flows (team_lengths.cpp): bytes of every rank's block, which the root tells
  /// all ranks, then the shape with these lengths, where this rank's block stands in the layout, and at the root how
  /// far its blocks stand from where the layout has them; empty where they follow each other.
  std::vector<std::uint64_t> lengths;
  CallShape shape;
  std::int64_t own_shift_bytes = 0;
  std::vector<std::int64_t> shifts;
  bool is_told = false;
};
/// Reads the arrays of `arguments`. Throws Error{invalid_argument} for one that is missing, for lengths that overflow
/// and for an own block that is not as long at both ends.
std::unique_ptr<UnequalBlocks> read_blocks(const CallArguments& arguments, int ranks, int rank);
/// Copies the lengths of a reduce_scatter's blocks. Throws Error{invalid_argument} where they are missing or overflow.
std::vector<std::size_t> read_block_counts(const CallArguments& arguments, int ranks);

/// Everything about a call that does not depend on its buffers. Made once per (collective, count, type, op, root).
struct Prepared {
  CallArguments arguments;                ///< the key: all but the buffers
  std::vector<std::size_t> block_counts;  ///< to which the arguments' point
  Selected selected;
  bool wide = false;
  CallShape shape;
  std::size_t input_bytes = 0;  ///< of the user's input, 0 where this rank needs none
  std::size_t result_bytes = 0;
  std::ptrdiff_t input_shift_bytes = 0;  ///< from the user's input back to byte 0 of the vector
  std::ptrdiff_t result_shift_bytes = 0;
  std::uint64_t board_count = 0;  ///< as BoardLine has them
  std::uint64_t board_kind = 0;
  bool is_plain = false;  ///< Team::run_again() may take the call: no arrays, no user function, something to do
  /// A channel's installed plan, and its straight form where there is one; nullptr until first used there.
  struct Place {
    InstalledPlan* plan = nullptr;
    std::unique_ptr<Straight> straight;
  };
  std::vector<Place> places;
  /// Of a scatter or gather of unequal blocks that runs as flows: the broadcast by which the root tells their lengths.
  std::unique_ptr<Prepared> lengths;
  bool tells_lengths(const UnequalBlocks* unequal) const noexcept { return lengths != nullptr && !unequal->is_told; }
};

/// What most calls are: a few words, and no more. Numbers as a caller of the C interface has written them, checked by
/// nobody yet. The buffers are not neighbours, as they are in torii_call: compilers copy neighbours in one load, and a
/// load of two words that have just been stored one by one waits for both to reach the cache.
struct PlainCall {
  int collective = 0;
  int type = 0;
  int op = 0;
  int root = 0;
  const void* input = nullptr;
  std::size_t count = 0;
  void* result = nullptr;
};

struct Request {
  enum class State : std::uint8_t { idle, queued, running, done };
  class Team* team = nullptr;
  CallArguments arguments;
  Prepared* prepared = nullptr;
  int channel = -1;  ///< a persistent operation's own channel
  bool persistent = false;
  State state = State::idle;
  Status status = Status::ok;
  std::uint64_t sequence = 0;  ///< in the order of calls on the shared channels, or persistent_sequence()
  std::size_t runs_on = 0;     ///< the channel
  /// CallHistory::salt() when the call was started. Persistent operations may be started in any order, so theirs is
  /// that of their preparation, and counts their own refused starts.
  std::uint32_t salt = 0;
  std::uint32_t salt_prepared = 0;
  std::uint32_t starts_refused = 0;
  /// Of an alltoall in place: its input as it was at the start, since results arrive where others have yet to be sent.
  std::unique_ptr<std::byte[]> input_copy;
  std::size_t input_copy_bytes = 0;
  std::unique_ptr<UnequalBlocks> unequal;
  std::vector<std::size_t> block_counts;  ///< to which the arguments' point, once they have been read
  std::size_t input_bytes() const noexcept { return unequal ? unequal->input_bytes : prepared->input_bytes; }
  std::size_t result_bytes() const noexcept { return unequal ? unequal->result_bytes : prepared->result_bytes; }
};

class Team final : public AttachedTeam {
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
  const Topology& topology() const noexcept { return topology_; }

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
    std::map<std::string, std::unique_ptr<InstalledPlan>> plans;
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

  // team_plans.cpp: from a call to an installed plan.
  Prepared* find_prepared(const CallArguments& arguments);
  std::unique_ptr<Prepared> make_prepared(const CallArguments& arguments);
  void install_on(Prepared& prepared, std::size_t channel);
  void install_one(Prepared& prepared, std::size_t channel);
  void reserve_staging(std::size_t end);
  void recycle_staging();
  void wait_for_recycled(std::uint64_t epoch);
  std::string call_text(const CallArguments& arguments) const;

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
  std::unique_ptr<Prepared> prepare_lengths(const CallArguments& arguments, const Selected& selected, const Plan& plan);
  void begin_lengths(Channel& channel, Request& request) noexcept;
  void take_lengths(Request& request);
  void begin_blocks(Channel& channel, Request& request) noexcept;
  CallBuffers block_buffers(const Request& request) const noexcept;
  // team_again.cpp
  bool is_again(const PlainCall& call) const noexcept;
  Status go_on(Prepared& prepared, std::size_t channel, const PlainCall& call, std::uint32_t salt) noexcept;
  static bool still_idle(void* team) noexcept;
  Status run_to_end(Request& request) noexcept;
  Status wait_for(Request& request) noexcept;

  // team_refusals.cpp: calls that this rank refused.
  void note_refusal(std::uint64_t sequence, const char* reason) noexcept;
  Status check_refusals(std::uint64_t own_sequence);
  Status fail_refused(int member, const RefusalNotice& notice);
  std::string refusals_text(int member);

  // team_installs.cpp: agreement on the plans in place.
  void log_install(InstalledPlan& plan, const std::string& key);
  InstallLog::Verdict install_verdict(int member, std::uint64_t number) noexcept;
  bool is_agreed(Channel& channel) noexcept;
  Status check_installs(const Waiting& waiting, const Request& request);
  void wait_in_start(int member, const std::string& purpose, const std::function<bool()>& is_there);

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
  Membership members_;
  TeamControl* own_control_;
  std::unique_ptr<TeamAgreement> agreement_;
  FailureSign failed_;
  Topology topology_ = Topology::node(1);
  Determinism determinism_ = Determinism::run;
  bool wide_wire_ = false;
  std::shared_ptr<const TuneTable> own_tune_table_;
  Forced forced_;
  std::size_t staging_bytes_ = 0;
  std::size_t staging_used_bytes_ = 0;
  std::size_t staging_touched_bytes_ = 0;  ///< the most that has been dealt out
  std::size_t shared_channels_ = 1;
  std::size_t control_bytes_ = 0;                   ///< what stands before the staging
  std::vector<std::unique_ptr<Channel>> channels_;  ///< the shared ones, then those of persistent operations
  mutable std::mutex channels_mutex_;               ///< held while channels_ grows, and by readers on other threads
  std::vector<int> free_channels_;                  ///< of persistent operations that are gone, ascending
  Waiting polling_;                                 ///< of callers that test instead of wait
  std::vector<std::unique_ptr<Prepared>> prepared_;
  Prepared* last_prepared_ = nullptr;
  std::uint64_t sequence_ = 0;  ///< of the last call, made or refused; persistent operations count when prepared
  CallHistory history_;
  RefusedCalls refused_;
  InstallLog installs_;
  std::size_t next_channel_ = 0;  ///< of the next call: the shared channels in turn
  std::uint64_t recycled_ = 0;
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

/// Bytes of a member's control memory and of its staging, for teams of up to `ranks` ranks of that context.
std::size_t team_control_bytes(int ranks, const Context& context) noexcept;
std::size_t team_staging_bytes(int ranks, Context& context) noexcept;
/// Of a context whose memory is not pinned.
std::size_t team_staging_bytes(int ranks) noexcept;

/// What a plan's staging may take, and what it depends on besides the plan. Equal on all members.
struct StagingLimit {
  std::size_t bytes = 0;
  bool wide = false;
  bool several_nodes = false;
};
/// The plan of `rank`, with segments made shorter until it fits or they have 512 bytes. Bits do not depend on segments.
Plan fitting_plan(Selected& selected, int rank, std::size_t unit_bytes, const StagingLimit& limit);
/// Of everything that must be equal on all members.
std::uint64_t options_digest(Context& context, const TeamOptions& options);

/// Vectors from this size on are stored past the caches: they would evict what the next segments need. A guess from the
/// size of the second-level caches; no sweep over it has been made.
inline constexpr std::size_t kStreamingBytes = std::size_t{8} << 20;

/// How often a blocking call looks at its own operation before it waits for good.
inline constexpr int kQuickPolls = 30;

}  // namespace torii
