// SPDX-License-Identifier: Apache-2.0
// Makes a context: reads settings, joins the job, maps the node's arenas, opens what reaches other nodes.
#include "api/context.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "api/carriers.hpp"
#include "api/helpers.hpp"
#include "api/team.hpp"
#include "runtime/agreement.hpp"
#include "runtime/log.hpp"
#include "runtime/rank_map.hpp"
#include "runtime/waiting.hpp"
#include "transports/shared_memory/arena.hpp"
#include "transports/shared_memory/node_peers.hpp"

namespace torii {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSparesMax = 8;

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

/// A page whose first byte is 1, and 0 in a forked child (MADV_WIPEONFORK): costs nothing and needs no fork handler.
char* make_fork_mark() {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw Error(Status::no_resource, "cannot map a page");
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    munmap(page, kPageBytes);
    throw Error(Status::unsupported, "the kernel has no MADV_WIPEONFORK (Linux 4.14 or newer is needed)");
  }
  *static_cast<volatile char*>(page) = 1;
  return static_cast<char*>(page);
}

}  // namespace

Context::Context(const Settings& settings, const JoinOffer& offer) : settings_(settings) {
  set_log_level(settings_.log);
  exchange_ = join(settings_, offer);
  all_or_none(*exchange_, [this](Exchange& exchange) {
    open(exchange);
    return true;
  });
}

/// All that can fail on one rank alone.
void Context::open(Exchange& exchange) {
  isa_ = chosen_isa(settings_.isa);
  if (!settings_.tune_file.empty()) loaded_table_ = TuneTable::load(settings_.tune_file);
  tune_table_ = loaded_table_ ? &*loaded_table_ : &TuneTable::built_in();
  rank_map_ = read_rank_map(settings_.rank_map);
  nodes_ = find_nodes(exchange, settings_);
  arena_ = shared_memory::make_arena(exchange, *nodes_, settings_.arena_bytes);
  regions_ = std::make_unique<Regions>(*arena_);
  peers_ = std::make_unique<shared_memory::NodePeers>(exchange, *nodes_, *arena_, settings_.timeout_s);
  transport_ = open_transport(exchange, settings_, *nodes_, *arena_, *peers_);
  spares_.reserve(kSparesMax);  // keeping one must not fail in the midst of free_retired()
  engine_bytes_.assign(static_cast<std::size_t>(settings_.engines), 0);
  fork_mark_.reset(make_fork_mark());
  if (settings_.helpers != 0) helpers_ = std::make_unique<Helpers>(*this, settings_.helpers);
}

void Context::refuse(const Error& error, const JoinOffer& offer) {
  try {
    const std::unique_ptr<Exchange> exchange = join({}, offer);
    all_or_none(*exchange, [&](Exchange&) -> bool { throw Error(error); });
  } catch (const Error& agreed) {
    if (agreed.status() == error.status()) throw;
  }
  throw Error(error);
}

void Context::ForkMarkEnd::operator()(char* page) const noexcept { munmap(page, kPageBytes); }

Context::~Context() {
  helpers_.reset();
  if (transport_ != nullptr) report_strangers();
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

const std::string& Context::host(int rank) const { return nodes_->host(rank); }

bool Context::several_nodes() const noexcept { return nodes_->count() > 1; }

void* Context::allocate(std::size_t bytes) {
  return arena_->base() + take_from_arena(bytes, shared_memory::Backing::reserved);
}

void Context::free(void* address) {
  if (!arena_->contains(address, 1)) {
    throw Error(Status::not_registered, "the address was not given by torii_allocate of this context");
  }
  arena_->free(static_cast<std::size_t>(static_cast<std::byte*>(address) - arena_->base()));
}

/// Whether the memory of a gone team is at rest: nobody writes into it, and no engine reads it.
///
/// A peer's last word to a team is its mark in `departed`, or the words behind all that it has put through each engine.
/// A dead peer of this node stores nothing any more. What a dead peer of another node has put may stand in a socket, a
/// switch or a device, and no fabric tells when the last of it has come. Its last words may be among that; after a
/// while they are not believed to come.
Context::Rest Context::rest_of(RetiredStaging& retired) noexcept {
  constexpr std::int64_t kLastWordsNs = 2'000'000'000;
  const std::byte* const memory = arena_->base() + retired.offset;
  const auto& control = *reinterpret_cast<const TeamControl*>(memory);
  bool may_come = false;
  for (std::size_t member = 0; member < retired.members.size(); ++member) {
    const int rank = retired.members[member];
    const bool departed = retired.several_nodes ? has_departed(memory + team_lines_offset(), static_cast<int>(member),
                                                               transport_->capabilities().engines)
                                                : control.departed[member].load(std::memory_order_acquire) != 0;
    if (departed) continue;
    if (transport_->alive(rank)) return Rest::none;
    may_come = may_come || transport_->node(rank) != transport_->node(this->rank());
  }
  if (!std::ranges::all_of(retired.puts, [](const PutOwner& puts) { return puts.drained(); })) return Rest::none;
  if (transport_->is_arriving(retired.offset, retired.bytes)) return Rest::none;
  if (!may_come) return Rest::safe;
  if (retired.dead_since_ns == 0) retired.dead_since_ns = now_ns();
  return now_ns() - retired.dead_since_ns < kLastWordsNs ? Rest::none : Rest::never;
}

void Context::free_retired() {
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](RetiredStaging& retired) {
    const Rest rest = rest_of(retired);
    if (rest == Rest::none) return false;
    if (retired.several_nodes) transport_->forget(retired.offset, retired.bytes);
    if (rest == Rest::safe) {
      keep_or_free(retired);
    } else {
      arena_->release(retired.offset, retired.bytes);  // the pages; the place stays taken as long as the arena lives
    }
    return true;
  });
}

/// Programs make and free groups in loops. To give pages back to the machine, and to take them again one fault at a
/// time on every rank that maps them, is most of what such a group costs; to clear the few that a short-lived team has
/// written is quick.
///
/// Members have dealt out as much as the one that has dealt out most, if calls differed: all have said how much that is
/// before they departed. The dead have not, and what comes from other nodes is not counted here.
void Context::keep_or_free(const RetiredStaging& retired) {
  constexpr std::size_t kTouchedMost = std::size_t{256} << 10;
  std::byte* const memory = arena_->base() + retired.offset;
  const auto& control = *reinterpret_cast<const TeamControl*>(memory);
  bool is_known = !retired.several_nodes;
  for (std::size_t member = 0; is_known && member < retired.members.size(); ++member) {
    is_known = control.departed[member].load(std::memory_order_acquire) != 0;
  }
  const std::size_t touched_bytes = control.touched_bytes.load(std::memory_order_relaxed);
  if (!is_known || touched_bytes > kTouchedMost || spares_.size() >= kSparesMax) {
    arena_->free(retired.offset);
    return;
  }
  std::memset(memory, 0, touched_bytes);
  spares_.push_back({retired.offset, retired.bytes});
}

void Context::retire_staging(RetiredStaging retired) {
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(retired));
  }
  free_retired();
}

/// What is kept for the next team is nobody's, so it goes before an allocation fails.
std::uint64_t Context::take_from_arena(std::size_t bytes, shared_memory::Backing backing) {
  try {
    return arena_->allocate(bytes, backing);
  } catch (const Error& error) {
    if (error.status() != Status::no_resource) throw;
  }
  free_retired();
  {
    const std::lock_guard lock(mutex_);
    for (const Spare& spare : spares_) arena_->free(spare.offset);
    spares_.clear();
  }
  return arena_->allocate(bytes, backing);
}

std::uint64_t Context::allocate_staging(std::size_t bytes) {
  free_retired();
  {
    const std::lock_guard lock(mutex_);
    const auto spare = std::ranges::find(spares_, bytes, &Spare::bytes);
    if (spare != spares_.end()) {
      const std::uint64_t offset = spare->offset;
      spares_.erase(spare);
      return offset;
    }
  }
  return take_from_arena(bytes, shared_memory::Backing::on_touch);
}

std::shared_ptr<const TuneTable> Context::team_table(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (last_team_table_.table == nullptr || last_team_table_.text != text) {
    last_team_table_ = {text, std::make_shared<const TuneTable>(TuneTable::parse(text, "the team's tune_table"))};
  }
  return last_team_table_.table;
}

std::size_t Context::staging_bytes_max() const noexcept {
  constexpr std::size_t kPart = 4;
  return arena_->is_pinned() ? arena_->capacity_bytes() / kPart : SIZE_MAX;
}

void Context::free_staging(std::uint64_t offset) { arena_->free(offset); }

void Context::reserve_staging(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t first = offset / kPageBytes * kPageBytes;
  arena_->reserve(first, (offset + bytes - first + kPageBytes - 1) / kPageBytes * kPageBytes);
}

std::size_t Context::own_node_ranks() const noexcept { return static_cast<std::size_t>(nodes_->own_ranks()); }

std::optional<std::int64_t> Context::reachable(const void* address, std::size_t bytes) const noexcept {
  if (arena_->contains(address, bytes)) return static_cast<const std::byte*>(address) - arena_->base();
  return regions_->find(address, bytes);
}

std::vector<std::uint64_t> Context::engine_bytes() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> bytes = engine_bytes_;
  for (const Team* team : teams_) {
    for (int engine = 0; engine < static_cast<int>(bytes.size()); ++engine) {
      bytes[static_cast<std::size_t>(engine)] += team->engine_bytes(engine);
    }
  }
  return bytes;
}

template <typename Change>
void Context::change_background(const Change& change) {
  // Several helpers could hold the shared lock by turns for ever.
  background_changes_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(background_mutex_);
  background_changes_.fetch_sub(1, std::memory_order_relaxed);
  change();
  background_count_.store(static_cast<int>(background_.size()), std::memory_order_relaxed);
}

void Context::enter_background(Team* team) {
  change_background([&] { background_.push_back(team); });
  background_came_.notify_all();
}

void Context::leave_background(Team* team) {
  change_background([&] { std::erase(background_, team); });
}

bool Context::progress_background(const Team* except) noexcept {
  if (background_count_.load(std::memory_order_relaxed) == 0) return false;
  if (background_changes_.load(std::memory_order_relaxed) != 0) return false;
  const std::shared_lock lock(background_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;  // the list is being changed
  bool moved = false;
  for (Team* team : background_) {
    if (team != except && team->progress_in_background()) moved = true;
  }
  return moved;
}

bool Context::wait_for_background(const std::stop_token& stop) {
  if (background_count_.load(std::memory_order_relaxed) != 0) return true;
  std::shared_lock lock(background_mutex_);
  return background_came_.wait(lock, stop, [this] { return !background_.empty(); });
}

void Context::attach(const Team* team) {
  const std::lock_guard lock(mutex_);
  teams_.push_back(team);
}

void Context::detach(const Team* team) {
  const std::lock_guard lock(mutex_);
  std::erase(teams_, team);
  for (std::size_t engine = 0; engine < engine_bytes_.size(); ++engine) {
    engine_bytes_[engine] += team->engine_bytes(static_cast<int>(engine));
  }
}

}  // namespace torii
