// SPDX-License-Identifier: Apache-2.0
// Messages between members about the team of survivors: offers, the decision, lost engines, objects made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/team/letterbox.hpp"

namespace torii {

/// Throws Error{transport} where memory that a member offers to the survivors' team does not lie in its arena.
void check_offer(int member, std::uint64_t staging, std::size_t bytes, std::uint64_t arena_bytes);
/// For the team's caller.
class SurvivorMessages {
 public:
  explicit SurvivorMessages(Letterbox& box) noexcept : box_(box) {}

  /// `staging` is that of the new team. A status other than ok: this member can make no team, for the reason `text`.
  void put_offer(std::uint64_t digest, std::uint64_t staging, Status status = Status::ok,
                 const std::string& text = {}) noexcept;
  const Letters::Offer* offer(int member) const noexcept;
  /// Tells all members that this one has made its object of the new team, or why it could not.
  void put_made(Status status, const std::string& text) noexcept;
  /// A member's report about its object, perhaps passed on by another member. A reason is passed on to all when first
  /// seen.
  const Letters::Offer* made(int member) noexcept;
  /// The engines by which nothing has come of a member's offer; a set of bits. None where it has made no offer.
  std::uint64_t missed_from(int member) const noexcept;
  /// Tells all members by which engines nothing has come of anybody's offer.
  void put_missed(std::uint64_t engines) noexcept;
  /// The engines that a member has told so; nothing before.
  std::optional<std::uint64_t> missed_by(int member) const noexcept;
  /// A member's decision about the new team, or nullptr. Passed on to all when first seen.
  const Letters::Decision* decision() noexcept;
  /// Decides for all those whose offers are here, and for all engines that anybody has missed.
  void decide() noexcept;
  /// Tells all members that the engines of the decision are closed here.
  void put_closed() noexcept;
  bool has_closed(int member) const noexcept;

 private:
  void put_decision() noexcept;
  void put_status(std::size_t offset, Letters::Offer& source, Status status, const char* text) noexcept;

  Letterbox& box_;
  bool has_decided_ = false;
};

}  // namespace torii
