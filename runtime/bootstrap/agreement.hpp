// SPDX-License-Identifier: Apache-2.0
// Steps that ranks take together: they succeed on all ranks, or fail on all of them for the same reason.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// The last exchange of an agreement has failed on this rank alone: the others may have ended well.
class Unsettled : public Error {
  using Error::Error;
};

/// An exchange in which every rank also says whether it has failed. Each all_gather() begins with a frame of 64 bytes:
/// a rank that has failed says so in place of its next exchange and in no other, so all ranks make equally many. Short
/// values travel in the frame. For all_or_none() only.
class Agreement final : public Bootstrap {
 public:
  /// `outer` may be an Agreement itself: the ranks then use the bootstrap behind it. Takes all memory that reporting a
  /// failure needs.
  explicit Agreement(Bootstrap& outer);
  ~Agreement() override;
  int rank() const noexcept override { return plain_.rank(); }
  int ranks() const noexcept override { return plain_.ranks(); }
  bool notices_deaths() const noexcept override { return plain_.notices_deaths(); }
  bool may_fail_alone() const noexcept override { return plain_.may_fail_alone(); }
  std::string address() const override { return plain_.address(); }
  Bootstrap& plain() noexcept override { return plain_; }
  bool decide(bool agreed) override;
  /// Throws besides what a rank has failed with, on all ranks.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

  /// This rank has done all steps. Throws what a rank has failed with meanwhile, or Unsettled.
  void conclude();
  /// This rank has failed: tells the others, unless they know, and throws what all ranks throw. A rank that misses
  /// another one (timeout, and peer_lost where the exchange notices no deaths) tells nobody: all miss that one, and
  /// would wait for it once more.
  [[noreturn]] void fail(const std::exception& error);

 private:
  enum class Says : std::uint32_t { value = 1, done = 2, failed = 3 };
  struct Frame;
  struct Trouble;
  void gather_plainly(std::span<const std::byte> mine, std::span<std::byte> all);
  void exchange_in_vain(std::span<const std::byte> mine, std::span<std::byte> all) noexcept;
  void gather_frames(Says says, std::span<const std::byte> mine);
  [[noreturn]] void settle(const Error* own);

  Bootstrap& plain_;
  std::unique_ptr<Frame[]> frames_;
  std::unique_ptr<Trouble[]> troubles_;
  std::optional<Error> verdict_;  ///< what all ranks throw
  bool is_refused_ = false;       ///< another rank has failed
  bool is_broken_ = false;        ///< the exchange itself has failed
  bool is_unsettled_ = false;     ///< conclude() has failed, perhaps on this rank alone
};

/// Calls body(exchange) on all ranks. What it throws on one rank is thrown on all of them, with that rank's status and
/// number, and its reason behind "rank N: "; of several failing ranks the lowest is named. What it returns is returned
/// when it has come to its end on all ranks. The body makes equally many exchanges, in the same order, on all ranks
/// that do not fail.
template <class Body>
auto all_or_none(Bootstrap& bootstrap, Body&& body) {
  Agreement agreement(bootstrap);
  try {
    auto made = std::forward<Body>(body)(static_cast<Bootstrap&>(agreement));
    agreement.conclude();
    return made;
  } catch (const std::exception& error) {
    agreement.fail(error);
  }
}

}  // namespace torii
