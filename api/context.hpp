// SPDX-License-Identifier: Apache-2.0
// One per process and job: settings, engines, memory, peers. Teams borrow them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "api/regions.hpp"
#include "collectives/selection.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/exchange.hpp"
#include "runtime/put_owner.hpp"
#include "runtime/settings.hpp"
#include "runtime/transport.hpp"

namespace torii {

namespace shared_memory {
class Arena;
class NodePeers;
class Nodes;
enum class Backing;
}  // namespace shared_memory

class Helpers;

/// A gone team's control memory and staging.
struct RetiredStaging {
  std::uint64_t offset;
  std::size_t bytes;
  std::vector<int> members;  ///< ranks of the context
  bool several_nodes;
  std::vector<PutOwner> puts = {};  ///< in whose names the team has put; what it put may still be read there
  std::int64_t dead_since_ns = 0;   ///< since when nothing is awaited but the last words of dead members; 0: not yet
};

class Context {
 public:
  /// Collective over the job. Throws Error.
  Context(const Settings& settings, const JoinOffer& offer);
  ~Context();
  /// For a rank whose settings are refused, before it can make a context: the other ranks end with its reason. Throws
  /// `error`, or what all ranks throw.
  [[noreturn]] static void refuse(const Error& error, const JoinOffer& offer);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int rank() const noexcept { return exchange_->rank(); }
  int ranks() const noexcept { return exchange_->ranks(); }
  const Settings& settings() const noexcept { return settings_; }
  /// What read_rank_map() has read of the setting.
  const std::string& rank_map() const noexcept { return rank_map_; }
  const TuneTable& tune_table() const noexcept { return *tune_table_; }
  kernels::Isa isa() const noexcept { return isa_; }
  Transport& transport() noexcept { return *transport_; }
  /// The exchange of the whole job: world teams are made with it.
  Exchange& exchange() noexcept { return *exchange_; }
  const std::string& host(int rank) const;
  bool several_nodes() const noexcept;

  /// Memory that peers map, at an offset of the own arena. Throws Error{no_resource | invalid_argument}.
  void* allocate(std::size_t bytes);
  void free(void* address);
  /// Staging and control memory of a team, zeroed: taken page by page as it is touched, or that of a gone team.
  std::uint64_t allocate_staging(std::size_t bytes);
  void free_staging(std::uint64_t offset);
  /// Takes the pages of a part of it from the machine. Throws Error{no_resource}.
  void reserve_staging(std::uint64_t offset, std::size_t bytes);
  /// Ranks of this rank's node.
  std::size_t own_node_ranks() const noexcept;
  /// The most that one team takes: where a fabric has pinned the arena it is small, and others want some of it too.
  std::size_t staging_bytes_max() const noexcept;
  /// Frees a gone team's memory, or keeps it for the next team, as soon as no peer can write into it any more. Where a
  /// member on another node has died without a last word, something that it put may come at any time: its place is
  /// never used again.
  void retire_staging(RetiredStaging retired);
  /// The table of a team that has one of its own. Of teams that are made alike the text is parsed once. Throws as
  /// TuneTable::parse().
  std::shared_ptr<const TuneTable> team_table(const std::string& text);
  /// Memory that the caller registered.
  Regions& regions() noexcept { return *regions_; }
  /// The offset in the own arena, when all of [address, address + bytes) lies there or was adopted.
  std::optional<std::int64_t> reachable(const void* address, std::size_t bytes) const noexcept;

  /// The embedder's function for a thread that waits; set before the first team is made.
  void set_idle(void (*function)(void* data), void* data) noexcept {
    idle_ = function;
    idle_data_ = data;
  }
  void idle() noexcept {
    if (idle_ != nullptr) idle_(idle_data_);
  }

  /// Logs when something has come that no rank of the job sends: the first one, then whenever ten times as many have.
  void report_strangers() noexcept;

  /// True in a process forked from the one that made this context: no call may be made there.
  bool is_forked_child() const noexcept { return *static_cast<const volatile char*>(fork_mark_.get()) == 0; }

  /// Bytes put by each engine for teams that are attached or were. From any thread.
  std::vector<std::uint64_t> engine_bytes() const;
  void attach(const class Team* team);
  void detach(const class Team* team);

  /// Teams with non-blocking operations in flight: whoever waits on another team of this context moves them too, and
  /// helper threads do.
  void enter_background(class Team* team);
  void leave_background(class Team* team);
  /// True when an operation moved.
  bool progress_background(const class Team* except) noexcept;
  /// For helper threads: sleeps until a team has operations in flight. False when stopped before.
  bool wait_for_background(const std::stop_token& stop);

 private:
  Settings settings_;
  kernels::Isa isa_ = kernels::Isa::automatic;
  std::optional<TuneTable> loaded_table_;
  std::string rank_map_;
  const TuneTable* tune_table_ = nullptr;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<shared_memory::Nodes> nodes_;
  std::unique_ptr<shared_memory::Arena> arena_;
  std::unique_ptr<Regions> regions_;
  std::unique_ptr<shared_memory::NodePeers> peers_;
  std::unique_ptr<Transport> transport_;
  void (*idle_)(void* data) = nullptr;
  void* idle_data_ = nullptr;
  struct ForkMarkEnd {
    void operator()(char* page) const noexcept;
  };
  std::unique_ptr<char, ForkMarkEnd> fork_mark_;  ///< a page that is wiped in a forked child
  std::atomic<std::uint64_t> strangers_reported_ = 0;
  mutable std::mutex mutex_;
  std::vector<const class Team*> teams_;
  std::vector<std::uint64_t> engine_bytes_;  ///< of teams that are gone
  struct Spare {
    std::uint64_t offset;
    std::size_t bytes;
  };
  struct TeamTable {
    std::string text;
    std::shared_ptr<const TuneTable> table;
  };
  template <typename Change>
  void change_background(const Change& change);
  void open(Exchange& exchange);
  enum class Rest { none, safe, never };
  Rest rest_of(RetiredStaging& retired) noexcept;
  void free_retired();
  void keep_or_free(const RetiredStaging& retired);
  std::uint64_t take_from_arena(std::size_t bytes, shared_memory::Backing backing);
  std::vector<RetiredStaging> retired_;
  std::vector<Spare> spares_;
  TeamTable last_team_table_;
  std::shared_mutex background_mutex_;       ///< shared by those who move, so that helpers move different teams at once
  std::atomic<int> background_changes_ = 0;  ///< callers who want the list for themselves: movers keep away
  std::condition_variable_any background_came_;
  std::vector<class Team*> background_;
  std::atomic<int> background_count_ = 0;
  std::unique_ptr<Helpers> helpers_;  ///< last, so that the threads end before anything that they use
};

}  // namespace torii
