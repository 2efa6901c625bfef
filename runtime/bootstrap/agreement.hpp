// SPDX-License-Identifier: Apache-2.0
// Steps of all ranks that succeed on all of them, or fail on all of them for the same reason.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/status.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// The last all-gather of an agreement has failed on this rank: the other ranks may have succeeded.
class OutcomeUnknown : public Error {
  using Error::Error;
};

/// A bootstrap in which every rank also says whether it has failed. Each all_gather() begins with a frame of 56 bytes.
/// A rank that has failed says so in the frame of its next all-gather, which is its last one, so all ranks make equally
/// many. Short values travel in the frame. For all_or_none() only.
class Agreement final : public Bootstrap {
 public:
  /// Makes a new agreement, unless `outer` is an Agreement: then this object uses the bootstrap behind it. Allocates
  /// all memory that the report of a failure needs.
  explicit Agreement(Bootstrap& outer);
  ~Agreement() override;
  int rank() const noexcept override { return plain_.rank(); }
  int ranks() const noexcept override { return plain_.ranks(); }
  bool notices_deaths() const noexcept override { return plain_.notices_deaths(); }
  bool may_fail_alone() const noexcept override { return plain_.may_fail_alone(); }
  std::string address() const override { return plain_.address(); }
  Bootstrap& plain() noexcept override { return plain_; }
  bool decide(bool agreed) override;
  /// If a rank has failed, throws that rank's error, on all ranks.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

  /// This rank has done all steps. Throws the error of a rank that failed meanwhile. If the last all-gather fails, the
  /// outcome is unknown; fail() then throws OutcomeUnknown.
  void conclude();
  /// This rank has failed: tells the others, unless they know, and throws the error that all ranks throw. If another
  /// rank is missing (timeout, or peer_lost if the bootstrap notices no deaths), it tells nobody. All ranks miss that
  /// one, and would only wait for it again.
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
  std::optional<Error> verdict_;  ///< the error that all ranks throw
  bool is_refused_ = false;       ///< another rank has failed
  bool is_broken_ = false;        ///< the bootstrap itself has failed
  bool is_unsettled_ = false;     ///< conclude() has failed, perhaps on this rank alone
};

/// Calls body(bootstrap) on all ranks. If it throws on some ranks, all ranks throw the error of the lowest one: its
/// status and rank, and "rank N: " before its reason. Otherwise returns the body's result once all ranks have finished.
/// The body makes equally many all-gathers, in the same order, on all ranks that do not fail.
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
