// SPDX-License-Identifier: Apache-2.0
// Which plans a team's members have installed, and in which order: no member writes into staging before all agree.
//
// Staging is assigned in the order of calls, so each rank knows its peers' offsets without a message. A rank whose
// calls differ, or that refused one, assigns other places: its puts would reach other plans' slots. So each rank
// publishes a word for each plan that it installs, and the first call of a plan begins when the words of all members
// are equal. Later calls of the plan check nothing.
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

  /// The next plan is installed. `fingerprint` is a hash of the plan and of the offset of its staging.
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
