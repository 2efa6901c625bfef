// SPDX-License-Identifier: Apache-2.0
// The memory of a team that this rank has left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "api/context/team_memory_pool.hpp"
#include "runtime/fabric/put_owner.hpp"
#include "runtime/fabric/transport.hpp"

namespace torii {

/// The memory is at rest under three conditions: every member has said its last word or is dead; the team's own puts
/// are done; no engine reads it. Then no member reads the team's outboxes either. A member's last word is its mark in
/// TeamControl::departed or, between nodes, a word behind all that it has put through each engine.
///
/// A dead member of this node stores nothing any more. Bytes from a dead member of another node may still be in a
/// socket, a switch or a device. No fabric tells when the last of them has come. The last words of the dead may be
/// among those bytes. After a while these words are not awaited any more, and the memory is never used again. The same
/// holds if a member says that it has closed an engine while the team lived: its last words went through others, and
/// overtake what the device of the closed one still writes (Transport::close_engines()).
class GoneTeam final : public RetiredMemory {
 public:
  /// `members` are ranks of the context. The transport must outlive this.
  GoneTeam(Transport& transport, std::uint64_t offset, std::size_t bytes, std::vector<int> members, bool several_nodes);
  /// Where the messages of its sends begin in the memory, behind control memory, and its standing rings.
  void set_offsets(std::size_t pairs, std::size_t rings) noexcept {
    pairs_offset_ = pairs;
    rings_offset_ = rings;
  }
  /// Puts in whose name the team has put: their sources may be in the memory.
  void add_puts(PutOwner puts) { puts_.push_back(std::move(puts)); }
  /// Left-out members, whose writes end with those of this team.
  void add_writers(std::vector<std::shared_ptr<const void>> writers) { writers_ = std::move(writers); }
  bool hold(int context_rank, const std::shared_ptr<const void>& writer) noexcept override;

  Rest rest() noexcept override;
  bool is_left_to_engines() const noexcept override;
  void forget() noexcept override;
  std::optional<Touched> touched() const noexcept override;

 private:
  const std::byte* memory() const noexcept;
  bool has_departed(std::size_t member) const noexcept;

  Transport& transport_;
  std::vector<int> members_;
  bool several_nodes_;
  std::size_t pairs_offset_ = 0;
  std::size_t rings_offset_ = 0;
  std::vector<PutOwner> puts_;
  std::vector<std::shared_ptr<const void>> writers_;
  std::int64_t dead_since_ns_ = 0;  ///< since when only last words of dead members are awaited; 0: not yet
};

}  // namespace torii
