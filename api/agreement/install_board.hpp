// SPDX-License-Identifier: Apache-2.0
// The plans and the staging of the members of a team, as they tell each other.
#pragma once

#include <cstdint>

namespace torii {

/// For the team's caller. The implementations are here and not in api/installation, because epochs also carry a
/// member's last words (ControlWriter::kLeft).
class InstallBoard {
 public:
  /// Tells the members of a plan that this rank has installed; `word` is InstallLog's word for it.
  virtual void put_install(std::uint64_t number, std::uint64_t word) noexcept = 0;
  virtual std::uint64_t install_word(int member, std::uint64_t number) noexcept = 0;
  /// Tells the members how far this rank is with recycling its staging.
  virtual void put_epoch(std::uint64_t epoch) noexcept = 0;
  virtual bool has_reached(int member, std::uint64_t epoch) noexcept = 0;
  /// Until the words of installations and epochs have left, no call may end.
  virtual bool control_puts_done() const noexcept = 0;
  /// Waits until these words have left, a tenth of a second at the longest.
  virtual void push_out() noexcept = 0;

 protected:
  ~InstallBoard() = default;
};

}  // namespace torii
