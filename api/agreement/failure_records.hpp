// SPDX-License-Identifier: Apache-2.0
// Why a team failed: recorded by the member that found out, read by all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/agreement/member_set.hpp"
#include "api/agreement/team_control.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"

namespace torii {

/// The word in this rank's reach that shows that the team has failed. A copy of the sign saves calls of 8 bytes a
/// virtual call: on one node they load the word directly.
class FailureSign {
 public:
  explicit FailureSign(const std::atomic<std::uint32_t>& state) noexcept : state_(&state) {}
  explicit FailureSign(const std::uint64_t& alarm) noexcept : alarm_(reinterpret_cast<const std::byte*>(&alarm)) {}
  /// True for a team on one node, whose failure record every member maps.
  bool is_record() const noexcept { return state_ != nullptr; }
  bool is_set() const noexcept {
    if (state_ != nullptr) return state_->load(std::memory_order_acquire) != FailureRecord::kNone;
    return load_word(alarm_) != 0;
  }

 private:
  const std::atomic<std::uint32_t>* state_ = nullptr;
  const std::byte* alarm_ = nullptr;
};

/// Why the team failed.
struct Cause {
  Status status;
  std::string text;
  int member = -1;        ///< that it names, such as the one that is lost; -1: none
  MemberSet absent = {};  ///< of a timeout: those that had not come to the call, or did not move it
};

/// The text of a cause that nobody could read.
inline constexpr const char* kNoCause = "a rank died while it reported a failure";

/// For the team's caller, but for claim(), push_out() and FailureSign::is_set(), which any thread may call.
class FailureRecords {
 public:
  virtual FailureSign failure_sign() const noexcept = 0;
  /// Records why the team failed, unless a member has recorded a cause before; between nodes proposes a cause.
  virtual void claim(Status status, int member, std::string_view text, const MemberSet& absent) noexcept = 0;
  /// Waits until what this rank told has left, a tenth of a second at the longest.
  virtual void push_out() noexcept = 0;
  /// The one cause that all members report. Only after the sign was set. Waits for at most a second.
  virtual Cause read_cause() noexcept = 0;

 protected:
  ~FailureRecords() = default;
};

}  // namespace torii
