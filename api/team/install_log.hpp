// SPDX-License-Identifier: Apache-2.0
// Which plans a team's members have put in place, and in which order: nobody writes into staging before all agree.
//
// Staging is dealt in the order of calls, so each rank knows its peers' offsets without a message. A rank whose calls
// differ, or that refused one, deals otherwise: its puts would land in other plans' slots. So each rank publishes a
// word for each plan that it puts in place, and the first call of a plan begins when the words of all members are
// equal. Later calls of the plan ask nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace torii {

class InstallLog {
 public:
  /// A word is published in place `number % kWords`, and overwritten only after all members agreed on it.
  static constexpr std::size_t kWords = 32;
  enum class Verdict : std::uint8_t { not_yet, agrees, differs };

  /// The next plan is put in place. `fingerprint` is a hash of what the plan is and of where its staging begins.
  /// Returns the number of the installation, from 1 on.
  std::uint64_t add(std::uint64_t fingerprint) noexcept;
  std::uint64_t number() const noexcept { return number_; }
  /// The word that stands for one of the last kWords installations. It depends on all installations before it, too.
  std::uint64_t word(std::uint64_t number) const noexcept { return words_[number % kWords]; }
  /// Compares a peer's word, read from place `number % kWords`, with this rank's word for that installation.
  Verdict compare(std::uint64_t peers_word, std::uint64_t number) const noexcept;

 private:
  /// The low bits of a word are the number of the installation; the others are a hash.
  static constexpr int kNumberBits = 16;
  std::array<std::uint64_t, kWords> words_{};
  std::uint64_t number_ = 0;
};

}  // namespace torii
