// SPDX-License-Identifier: Apache-2.0
// Makes a context: joins the job, maps the arenas of the node, and opens the transport.
#include "api/context/context.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "api/context/founding_boards.hpp"
#include "api/context/known_classes.hpp"
#include "api/context/own_memory.hpp"
#include "api/context/progress_threads.hpp"
#include "api/context/team_memory_pool.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/page.hpp"
#include "runtime/bootstrap/agreement.hpp"
#include "runtime/fabric/waiting.hpp"
#include "runtime/topology/rank_map.hpp"
#include "transports/shared_memory/node_peers.hpp"
#include "transports/shared_memory/nodes.hpp"

namespace torii {
namespace {

/// So long, for all teams together, their notices of a left-out rank are pushed out: pushing those of one team moves
/// those of the others too.
constexpr std::int64_t kPushNs = 100'000'000;

kernels::Isa chosen_isa(const std::string& text) {
  const auto isa = kernels::parse_isa(text);
  const auto available = kernels::available_isas();
  if (isa == kernels::Isa::automatic) return *isa;
  if (isa && std::find(available.begin(), available.end(), *isa) != available.end()) return *isa;
  std::string names;
  for (const auto each : available) names += std::string(names.empty() ? "" : ", ") + kernels::name(each);
  throw Error(isa ? Status::unsupported : Status::invalid_argument,
              "TORII_ISA is '" + text + "'; this machine and build have: auto, " + names);
}

std::unique_ptr<Bootstrap> log_and_join(const Settings& settings, const JoinExchange& given) {
  set_log_level(settings.log);
  return join(settings, given);
}

/// A page whose first byte is 1, but 0 in a forked child.
char* make_fork_mark() {
  auto* const page = static_cast<char*>(map_page_wiped_on_fork());
  *static_cast<volatile char*>(page) = 1;
  return page;
}

}  // namespace

Context::Context(const Settings& settings, const JoinExchange& given, const Context* memory_of)
    : Context(settings, log_and_join(settings, given), open_transport, memory_of) {}

Context::Context(const Settings& settings, std::unique_ptr<Bootstrap> bootstrap, const TransportOpener& open,
                 const Context* memory_of)
    : settings_(settings), bootstrap_(std::move(bootstrap)) {
  all_or_none(*bootstrap_, [&](Bootstrap& agreed) {
    this->open(agreed, open, memory_of);
    return true;
  });
}

/// The steps that can fail on one rank alone.
void Context::open(Bootstrap& bootstrap, const TransportOpener& open, const Context* memory_of) {
  isa_ = chosen_isa(settings_.isa);
  if (!settings_.tune_file.empty())
    loaded_table_ = std::make_unique<const TuneTable>(TuneTable::load(settings_.tune_file));
  rank_map_ = read_rank_map(settings_.rank_map);
  nodes_ = find_nodes(bootstrap, settings_);
  const shared_memory::Arena* const earlier = memory_of != nullptr ? memory_of->memory_->arena.get() : nullptr;
  auto made = shared_memory::make_arena(bootstrap, *nodes_, settings_.arena_bytes, earlier);
  if (memory_of != nullptr) {
    memory_ = memory_of->memory_;
  } else {
    auto late_writers = std::make_unique<LateWriters>(*made);
    auto regions = std::make_unique<Regions>(*made, *late_writers);
    memory_ = std::make_shared<const OwnMemory>(
        OwnMemory{std::move(made), std::move(late_writers), std::move(regions), std::make_unique<RestingBoards>()});
  }
  shared_memory::Arena& arena = *memory_->arena;
  boards_ = std::make_unique<FoundingBoards>(arena, *memory_->boards, *nodes_, bootstrap.rank());
  peers_ = std::make_unique<shared_memory::NodePeers>(bootstrap, *nodes_, arena, settings_.timeout_s, boards_->place());
  transport_ = open(bootstrap, settings_, *nodes_, arena, *peers_);
  team_memory_ = std::make_unique<TeamMemoryPool>(arena, *memory_->late_writers);
  left_out_ = std::vector<std::atomic<bool>>(static_cast<std::size_t>(bootstrap.ranks()));
  engine_bytes_.assign(static_cast<std::size_t>(settings_.engines), 0);
  fork_mark_.reset(make_fork_mark());
  if (settings_.helpers != 0) {
    progress_threads_ =
        std::make_unique<ProgressThreads>(background_, *transport_, settings_.helpers, settings_.helper_cpus);
  }
}

void Context::refuse(const Error& error, const JoinExchange& given) {
  std::unique_ptr<Bootstrap> bootstrap;
  try {
    bootstrap = join({}, given);
  } catch (const Error&) {
    throw Error(error);  // the others cannot be told
  }
  try {
    all_or_none(*bootstrap, [&](Bootstrap&) -> bool { throw Error(error); });
  } catch (const Error& agreed) {
    if (agreed.status() == error.status()) throw;
  }
  throw Error(error);
}

void Context::ForkMarkEnd::operator()(char* page) const noexcept { munmap(page, kPageBytes); }

Context::~Context() {
  progress_threads_.reset();
  if (transport_ == nullptr) return;
  report_strangers();
  report_counters();
  // Another context may go on with the arena, and needs the room.
  try {
    const std::vector<std::uint64_t> at_rest_soon = team_memory_->close();
    memory_->late_writers->forget(*transport_, *peers_);
    team_memory_.reset();
    transport_.reset();
    for (const std::uint64_t offset : at_rest_soon) memory_->arena->free(offset);
  } catch (const std::exception&) {
    log(LogLevel::error, "out of memory: that of some teams stays set aside");
  }
}

void Context::report_strangers() noexcept {
  const std::uint64_t count = transport_->strangers();
  std::uint64_t reported = strangers_reported_.load(std::memory_order_relaxed);
  if (count == 0 || count / 10 < reported) return;
  if (!strangers_reported_.compare_exchange_strong(reported, count, std::memory_order_relaxed)) return;
  try {
    log(LogLevel::warn, "rank " + std::to_string(transport_->rank()) + " has dropped " + std::to_string(count) +
                            " messages that no rank of the job sends: somebody else reaches the ports of its engines");
  } catch (const std::exception&) {
    log(LogLevel::warn, "messages that no rank of the job sends were dropped");
  }
}

void Context::report_counters() const noexcept {
  if (!logs(LogLevel::info)) return;
  try {
    std::string text = "rank " + std::to_string(rank()) + " at its end:";
    for (const CounterText& one : kCounterTexts) {
      text += (&one == kCounterTexts ? " " : ", ") + std::string(one.text) + " " +
              std::to_string((counters().*one.counter).load(std::memory_order_relaxed));
    }
    log(LogLevel::info, text);
  } catch (const std::exception&) {
    log(LogLevel::info, "there is no memory to tell the counters");
  }
}

const TuneTable& Context::tune_table() const { return loaded_table_ ? *loaded_table_ : TuneTable::built_in(); }

const std::string& Context::host(int rank) const { return nodes_->host(rank); }

bool Context::several_nodes() const noexcept { return nodes_->count() > 1; }

Regions& Context::regions() {
  if (memory_->late_writers->may_write()) team_memory_->free_retired();  // with teams that a left-out rank has left
  return *memory_->regions;
}

void* Context::allocate(std::size_t bytes) {
  regions().end_hold();
  return memory_->arena->base() + team_memory_->take(bytes, shared_memory::Backing::reserved);
}

void Context::free(void* address) {
  shared_memory::Arena& arena = *memory_->arena;
  if (!arena.contains(address, 1)) {
    throw Error(Status::not_registered, "the address was not given by torii_allocate of this context");
  }
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(address) - arena.base());
  if (memory_->late_writers->may_write() && memory_->late_writers->may_reach(offset)) {
    team_memory_->set_aside(offset);
  } else {
    arena.free(offset);
  }
}

const std::string& Context::digest_text() {
  const std::lock_guard lock(mutex_);
  if (!digest_text_.empty()) return digest_text_;
  std::string text = "VERSION=" + std::string(TORII_VERSION) + "\n" + settings_.digest_text();
  if (!text.ends_with('\n')) text += '\n';
  digest_text_ = text + "TUNE_FILE digest=" + std::to_string(tune_table().digest()) + "\n";
  return digest_text_;
}

std::shared_ptr<const TuneTable> Context::team_table(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (last_team_table_.table == nullptr || last_team_table_.text != text) {
    last_team_table_ = {text, std::make_shared<const TuneTable>(TuneTable::parse(text, "the team's tune_table"))};
  }
  return last_team_table_.table;
}

std::shared_ptr<KnownClasses> Context::known_classes(ChoiceRules rules) {
  // Classes have plans, which are long for many ranks.
  constexpr std::size_t kKept = 4;
  constexpr int kRanksMost = 64;
  const std::lock_guard lock(mutex_);
  const auto keep = [this](std::shared_ptr<KnownClasses> asked) {
    if (asked->rules().topology.ranks() > kRanksMost) return asked;
    std::erase(kept_classes_, asked);
    if (kept_classes_.size() == kKept) kept_classes_.erase(kept_classes_.begin());
    kept_classes_.push_back(asked);
    return asked;
  };
  std::erase_if(known_classes_, [](const auto& one) { return one.expired(); });
  for (const auto& one : known_classes_) {
    auto known = one.lock();
    if (known == nullptr || !(known->rules() == rules)) continue;  // the last team may go at any time
    // Topologies may be equal trees and have different texts, since a text has the name of the tree's file.
    if (known->rules().topology.text() == rules.topology.text()) return keep(std::move(known));
  }
  auto fresh = std::make_shared<KnownClasses>(std::move(rules));
  known_classes_.push_back(fresh);
  return keep(std::move(fresh));
}

std::uint64_t Context::arena_bytes() const noexcept { return memory_->arena->bytes(); }

std::size_t Context::own_node_ranks() const noexcept { return static_cast<std::size_t>(nodes_->own_ranks()); }

std::optional<std::int64_t> Context::reachable(const void* address, std::size_t bytes) const noexcept {
  const shared_memory::Arena& arena = *memory_->arena;
  if (arena.contains(address, bytes)) return static_cast<const std::byte*>(address) - arena.base();
  return memory_->regions->find(address, bytes);
}

std::vector<std::uint64_t> Context::engine_bytes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> bytes = engine_bytes_;
  for (const AttachedTeam* team : teams_) {
    for (int engine = 0; engine < static_cast<int>(bytes.size()); ++engine) {
      bytes[static_cast<std::size_t>(engine)] += team->engine_bytes(engine);
    }
  }
  return bytes;
}

void Context::leave_out(const std::vector<int>& ranks) noexcept {
  for (const int rank : ranks) {
    if (left_out_[static_cast<std::size_t>(rank)].exchange(true, std::memory_order_relaxed)) continue;
    std::shared_ptr<const void> writer;
    if (nodes_->is_own(rank)) {
      writer = memory_->late_writers->add(*transport_, rank);
      memory_->regions->hold();
      if (!team_memory_->hold(rank, writer)) memory_->late_writers->keep(rank);
    }
    const std::lock_guard lock(mutex_);
    for (AttachedTeam* const team : teams_) {
      if (!team->lose(rank, writer)) memory_->late_writers->keep(rank);
    }
    // This rank may never be in a call of those teams again.
    const std::int64_t begin_ns = now_ns();
    for (AttachedTeam* const team : teams_) {
      if (now_ns() - begin_ns < kPushNs) team->push_out();
    }
  }
}

void Context::attach(AttachedTeam* team) {
  const std::lock_guard lock(mutex_);
  background_.reserve(teams_.size() + 1);
  teams_.push_back(team);
}

void Context::detach(AttachedTeam* team) {
  const std::lock_guard lock(mutex_);
  std::erase(teams_, team);
  for (std::size_t engine = 0; engine < engine_bytes_.size(); ++engine) {
    engine_bytes_[engine] += team->engine_bytes(static_cast<int>(engine));
  }
}

}  // namespace torii
