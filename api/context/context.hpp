// SPDX-License-Identifier: Apache-2.0
// One context per process and job: it owns settings, engines, memory and peers, which teams borrow.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/context/attached_team.hpp"
#include "api/context/background.hpp"
#include "api/context/end_event.hpp"
#include "api/context/transport_factory.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii {

class FoundingBoards;
class KnownClasses;
class ProgressThreads;
class Regions;
class TeamMemoryPool;
class TuneTable;
struct ChoiceRules;
struct OwnMemory;

class Context {
 public:
  /// Collective over the job. With `memory_of`, which only some ranks may have, this rank's memory is that of an
  /// earlier context. The allocations and regions of that context are then this one's too. Throws Error.
  Context(const Settings& settings, const JoinExchange& given, const Context* memory_of = nullptr);
  /// For a rank that has joined already. The ranks reach each other by the transports that `open` opens.
  Context(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap, const TransportOpener& open,
          const Context* memory_of = nullptr);
  ~Context();
  /// For a rank whose settings are refused before it can make a context: the other ranks fail with its reason. Throws
  /// `error`, or the error that all ranks throw.
  [[noreturn]] static void refuse(const Error& error, const JoinExchange& given);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const noexcept { return bootstrap_->rank(); }
  int ranks() const noexcept { return bootstrap_->ranks(); }
  const Settings& settings() const noexcept { return settings_; }
  /// The result of read_rank_map() for the setting.
  const std::string& rank_map() const noexcept { return rank_map_; }
  /// That of TORII_TUNE_FILE, or the built-in one, which is read at the first call: not all jobs make a team.
  const TuneTable& tune_table() const;
  /// The text of the context that members of a team compare: version, settings, tune table; "NAME=value" lines. Made at
  /// the first call.
  const std::string& digest_text();
  kernels::Isa isa() const noexcept { return isa_; }
  Transport& transport() noexcept { return *transport_; }
  const Counters& counters() const noexcept { return transport_->counters(); }
  /// The bootstrap of the whole job: teams of all ranks are made with it.
  Bootstrap& bootstrap() noexcept { return *bootstrap_; }
  const std::string& host(int rank) const;
  const shared_memory::Nodes& nodes() const noexcept { return *nodes_; }
  const shared_memory::NodePeers& peers() const noexcept { return *peers_; }
  bool several_nodes() const noexcept;

  /// Memory in this rank's arena, which peers map. Throws Error{no_resource | invalid_argument}.
  void* allocate(std::size_t bytes);
  void free(void* address);
  /// Memory of teams in this rank's arena.
  TeamMemoryPool& team_memory() noexcept { return *team_memory_; }
  /// On which ranks of this node found teams by numbers.
  FoundingBoards& boards() noexcept { return *boards_; }
  /// The length of each rank's arena.
  std::uint64_t arena_bytes() const noexcept;
  /// The number of ranks of this rank's node.
  std::size_t own_node_ranks() const noexcept;
  /// The parsed tune table of a team. The last text is cached, for programs that make many teams with one table. Throws
  /// like TuneTable::parse().
  std::shared_ptr<const TuneTable> team_table(const std::string& text);
  /// Shared by all teams for which everything is chosen by the same rules. Those that were asked for last are kept when
  /// their teams have gone, for programs that make and free teams in loops.
  std::shared_ptr<KnownClasses> known_classes(ChoiceRules rules);
  /// Memory that the caller registered.
  Regions& regions();
  /// The offset in this rank's arena if all of [address, address + bytes) is in the arena or was adopted.
  std::optional<std::int64_t> reachable(const void* address, std::size_t bytes) const noexcept;

  /// Sets the embedder's function that waiting threads call. Call this before the first team is made.
  void set_idle(void (*function)(void* data), void* data) noexcept {
    idle_ = function;
    idle_data_ = data;
  }
  bool has_idle() const noexcept { return idle_ != nullptr; }
  void idle() noexcept {
    if (idle_ != nullptr) idle_(idle_data_);
  }

  /// Logs messages that no rank of the job sends: the first one, then at every tenfold count.
  void report_strangers() noexcept;
  /// Logs what calls cost that were not like the ones before.
  void report_counters() const noexcept;

  /// True in a child forked from the process that made this context; the child must not call the library.
  bool is_forked_child() const noexcept { return *static_cast<const volatile char*>(fork_mark_.get()) == 0; }

  /// Ranks that a team of survivors has left out although they may live. They count as lost in all teams of this
  /// context. Teams of which they are members fail now. Any thread.
  void leave_out(const std::vector<int>& ranks) noexcept;
  bool has_left_out(int rank) const noexcept {
    return left_out_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
  }

  /// Bytes put by each engine for all teams, including those that are gone. From any thread.
  std::vector<std::uint64_t> engine_bytes() const;
  void attach(AttachedTeam* team);
  void detach(AttachedTeam* team);
  /// Teams with operations in flight.
  Background& background() noexcept { return background_; }
  /// Rung when an operation ends that a caller started.
  EndEvent& end_event() noexcept { return end_event_; }

 private:
  Settings settings_;
  kernels::Isa isa_ = kernels::Isa::automatic;
  std::unique_ptr<const TuneTable> loaded_table_;
  std::string rank_map_;
  std::string digest_text_;  ///< empty before the first call
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<shared_memory::Nodes> nodes_;
  std::shared_ptr<const OwnMemory> memory_;
  std::unique_ptr<FoundingBoards> boards_;
  std::unique_ptr<shared_memory::NodePeers> peers_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TeamMemoryPool>
      team_memory_;  ///< destroyed before the transport, to which memory of gone teams refers
  void (*idle_)(void* data) = nullptr;
  void* idle_data_ = nullptr;
  struct ForkMarkEnd {
    void operator()(char* page) const noexcept;
  };
  std::unique_ptr<char, ForkMarkEnd> fork_mark_;  ///< a page that is wiped in a forked child
  std::atomic<std::uint64_t> strangers_reported_ = 0;
  mutable std::mutex mutex_;
  std::vector<AttachedTeam*> teams_;
  std::vector<std::atomic<bool>> left_out_;  ///< by rank
  std::vector<std::uint64_t> engine_bytes_;  ///< by engine: bytes put for teams that are gone
  struct TeamTable {
    std::string text;
    std::shared_ptr<const TuneTable> table;
  };
  void open(Bootstrap& bootstrap, const TransportOpener& open, const Context* memory_of);
  TeamTable last_team_table_;
  std::vector<std::weak_ptr<KnownClasses>> known_classes_;   ///< of teams that live
  std::vector<std::shared_ptr<KnownClasses>> kept_classes_;  ///< the last one at the end
  Background background_;
  EndEvent end_event_;
  std::unique_ptr<ProgressThreads> progress_threads_;
};

}  // namespace torii
