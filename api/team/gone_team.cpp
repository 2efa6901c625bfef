// SPDX-License-Identifier: Apache-2.0
// Finds out when no rank writes into the memory of a gone team any more.
#include "api/team/gone_team.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "api/agreement/control_writer.hpp"
#include "api/agreement/team_control.hpp"
#include "runtime/fabric/waiting.hpp"

namespace torii {
namespace {

/// How long the last words of dead members are awaited.
constexpr std::int64_t kLastWordsNs = 2'000'000'000;

}  // namespace

GoneTeam::GoneTeam(Transport& transport, std::uint64_t offset, std::size_t bytes, std::vector<int> members,
                   bool several_nodes)
    : RetiredMemory(offset, bytes),
      transport_(transport),
      members_(std::move(members)),
      several_nodes_(several_nodes) {}

const std::byte* GoneTeam::memory() const noexcept { return transport_.mapped(transport_.rank(), offset()); }

bool GoneTeam::has_departed(std::size_t member) const noexcept {
  if (several_nodes_) {
    return torii::has_departed(memory() + agreement_messages_offset(), static_cast<int>(member),
                               transport_.capabilities().engines);
  }
  return reinterpret_cast<const TeamControl*>(memory())->departed[member].load(std::memory_order_acquire) == kIsGone;
}

bool GoneTeam::hold(int context_rank, const std::shared_ptr<const void>& writer) noexcept {
  if (writer == nullptr || std::ranges::find(members_, context_rank) == members_.end()) return true;
  try {
    writers_.push_back(writer);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

RetiredMemory::Rest GoneTeam::rest() noexcept {
  bool may_come = false;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (has_departed(member)) continue;
    if (transport_.alive(members_[member])) return Rest::none;
    may_come = may_come || transport_.node(members_[member]) != transport_.node(transport_.rank());
  }
  if (!std::ranges::all_of(puts_, [](const PutOwner& puts) { return puts.drained(); })) return Rest::none;
  const auto is_arriving = [this](const Stretch& one) { return transport_.is_arriving(one.offset, one.bytes); };
  if (transport_.is_arriving(offset(), bytes()) || std::ranges::any_of(entries(), is_arriving)) return Rest::none;
  for (std::size_t member = 0; several_nodes_ && member < members_.size(); ++member) {
    const bool is_own = members_[member] == transport_.rank();
    if (!is_own && departed_early(memory() + agreement_messages_offset(), static_cast<int>(member),
                                  transport_.capabilities().engines)) {
      return Rest::never;
    }
  }
  if (!may_come) return Rest::safe;
  if (dead_since_ns_ == 0) dead_since_ns_ = now_ns();
  return now_ns() - dead_since_ns_ < kLastWordsNs ? Rest::none : Rest::never;
}

bool GoneTeam::is_left_to_engines() const noexcept {
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const int rank = members_[member];
    const bool stores_itself = transport_.node(rank) == transport_.node(transport_.rank()) && rank != transport_.rank();
    if (stores_itself && !has_departed(member) && transport_.alive(rank)) return false;
  }
  return true;
}

void GoneTeam::forget() noexcept {
  if (!several_nodes_) return;
  transport_.forget(offset(), bytes());
  for (const Stretch& one : entries()) transport_.forget(one.offset, one.bytes);
}

/// If calls differed, members have used different rings; each reports how much before it departs. Dead members have not
/// reported it, and bytes from other nodes are not counted.
std::optional<Touched> GoneTeam::touched() const noexcept {
  if (several_nodes_) return {};
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!has_departed(member)) return {};
  }
  const auto& control = *reinterpret_cast<const TeamControl*>(memory());
  return Touched{Stretch{0, pairs_offset_},
                 Stretch{pairs_offset_, control.touched_pair_bytes.load(std::memory_order_relaxed)},
                 Stretch{rings_offset_, control.touched_ring_bytes.load(std::memory_order_relaxed)}};
}

}  // namespace torii
