// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of gone teams until no rank writes there, and caches some of it for the next teams.
#include "api/context/team_memory_pool.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "runtime/base/page.hpp"
#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::size_t kSparesMax = 8;
/// Memory in which a team has written more than this is not cached, nor an outbox of which so much has pages. The words
/// of one ring for each pair of 32 ranks are less.
constexpr std::size_t kTouchedMost = std::size_t{512} << 10;

/// The first spare of that size, which is no spare from then on.
template <class Spare>
std::optional<Spare> take_from(std::vector<Spare>& spares, std::size_t bytes) noexcept {
  const auto at = std::ranges::find(spares, bytes, &Spare::bytes);
  if (at == spares.end()) return {};
  const Spare spare = *at;
  spares.erase(at);
  return spare;
}

/// A caller's memory that a left-out rank may still write to.
class SetAside final : public RetiredMemory {
 public:
  SetAside(std::size_t offset, std::size_t bytes, LateWriters& writers)
      : RetiredMemory(offset, bytes), writers_(writers) {}
  Rest rest() noexcept override { return writers_.may_reach(offset()) ? Rest::none : Rest::safe; }
  bool is_left_to_engines() const noexcept override { return false; }
  void forget() noexcept override {}
  std::optional<Touched> touched() const noexcept override { return {}; }

 private:
  LateWriters& writers_;
};

}  // namespace

TeamMemoryPool::TeamMemoryPool(shared_memory::Arena& arena, LateWriters& late_writers)
    : arena_(arena), late_writers_(late_writers) {
  spares_.reserve(kSparesMax);  // push_back() must not throw inside free_retired()
  spare_outboxes_.reserve(kSparesMax);
}

std::vector<std::uint64_t> TeamMemoryPool::close() {
  free_retired();
  free_spares();
  std::vector<std::uint64_t> offsets;
  for (const std::unique_ptr<RetiredMemory>& memory : retired_) {
    if (!memory->is_left_to_engines()) continue;
    offsets.push_back(memory->offset());
    for (const OutboxMemory& outbox : memory->outboxes()) offsets.push_back(outbox.offset);
    for (const Stretch& entries : memory->entries()) offsets.push_back(entries.offset);
  }
  return offsets;
}

void TeamMemoryPool::free_spares() noexcept {
  const std::lock_guard lock(mutex_);
  for (const Spare& spare : spares_) arena_.free(spare.offset);
  for (const OutboxMemory& outbox : spare_outboxes_) arena_.free(outbox.offset);
  spares_.clear();
  spare_outboxes_.clear();
}

void TeamMemoryPool::free_retired() {
  (void)late_writers_.may_write();  // one look for all that is set aside
  const std::lock_guard lock(mutex_);
  std::erase_if(retired_, [this](const std::unique_ptr<RetiredMemory>& memory) {
    const RetiredMemory::Rest rest = memory->rest();
    if (rest == RetiredMemory::Rest::none) return false;
    memory->forget();
    for (const OutboxMemory& outbox : memory->outboxes()) keep_or_free(outbox);  // nobody writes there late
    if (rest == RetiredMemory::Rest::safe) {
      keep_or_free(*memory);
      for (const Stretch& entries : memory->entries()) arena_.free(entries.offset);
    } else {
      arena_.release(memory->offset(), memory->bytes());  // frees the pages, not the addresses
      for (const Stretch& entries : memory->entries()) arena_.release(entries.offset, entries.bytes);
    }
    return true;
  });
}

/// Programs make and free teams in loops. Freeing the pages of such a team, and faulting them in again on every rank
/// that maps them, would be most of its cost. Clearing the few bytes that a short-lived team has written is quick.
void TeamMemoryPool::keep_or_free(const RetiredMemory& memory) {
  const std::optional<Touched> touched = memory.touched();
  const auto bytes_of = [](const Touched& all) { return all[0].bytes + all[1].bytes + all[2].bytes; };
  if (!touched || bytes_of(*touched) > kTouchedMost || spares_.size() >= kSparesMax) {
    arena_.free(memory.offset());
    return;
  }
  for (const Stretch& stretch : *touched) {
    std::memset(arena_.base() + memory.offset() + stretch.offset, 0, stretch.bytes);
  }
  spares_.push_back({memory.offset(), memory.bytes()});
}

void TeamMemoryPool::keep_or_free(const OutboxMemory& outbox) {
  if (outbox.touched_bytes > kTouchedMost || spare_outboxes_.size() >= kSparesMax) {
    arena_.free(outbox.offset);
  } else {
    spare_outboxes_.push_back(outbox);
  }
}

void TeamMemoryPool::retire(std::unique_ptr<RetiredMemory> memory) {
  {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(memory));
  }
  free_retired();
}

void TeamMemoryPool::set_aside(std::size_t offset) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t bytes = arena_.bytes_at(offset);
    const auto is_it = [=](const auto& memory) { return memory->offset() == offset; };
    if (std::ranges::any_of(retired_, is_it)) {
      throw Error(Status::invalid_argument,
                  "the allocation at offset " + std::to_string(offset) + " of the arena was freed before");
    }
    retired_.push_back(std::make_unique<SetAside>(offset, bytes, late_writers_));
    // Its pages, though not those that it shares with others, go back to the machine, before anybody frees it.
    const std::size_t first = (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
    const std::size_t end = (offset + bytes) / kPageBytes * kPageBytes;
    if (first < end) arena_.release(first, end - first);
  }
  free_retired();
}

bool TeamMemoryPool::hold(int context_rank, const std::shared_ptr<const void>& writer) noexcept {
  const std::lock_guard lock(mutex_);
  bool all_hold = true;
  for (const std::unique_ptr<RetiredMemory>& memory : retired_) {
    all_hold = memory->hold(context_rank, writer) && all_hold;
  }
  return all_hold;
}

std::uint64_t TeamMemoryPool::take(std::size_t bytes, shared_memory::Backing backing) {
  try {
    return arena_.allocate(bytes, backing);
  } catch (const Error& error) {
    if (error.status() != Status::no_resource) throw;
  }
  free_retired();
  free_spares();
  return arena_.allocate(bytes, backing);
}

std::uint64_t TeamMemoryPool::allocate(std::size_t bytes) {
  free_retired();
  {
    const std::lock_guard lock(mutex_);
    if (const auto spare = take_from(spares_, bytes)) return spare->offset;
  }
  return take(bytes, shared_memory::Backing::on_touch);
}

OutboxMemory TeamMemoryPool::take_outbox(std::size_t bytes) {
  free_retired();
  {
    const std::lock_guard lock(mutex_);
    if (const auto spare = take_from(spare_outboxes_, bytes)) return *spare;
  }
  return {take(bytes, shared_memory::Backing::on_touch), bytes, 0};
}

std::size_t TeamMemoryPool::bytes_max() const noexcept {
  constexpr std::size_t kPart = 4;
  return arena_.is_pinned() ? arena_.capacity_bytes() / kPart : SIZE_MAX;
}

void TeamMemoryPool::reserve(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t first = offset / kPageBytes * kPageBytes;
  arena_.reserve(first, (offset + bytes - first + kPageBytes - 1) / kPageBytes * kPageBytes);
}

}  // namespace torii
