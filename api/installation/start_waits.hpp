// SPDX-License-Identifier: Apache-2.0
// The waits that the start of a call may need.
#pragma once

#include <functional>
#include <string>

namespace torii {

/// For the caller of a team that starts a call. Waits implements it: other operations go on in these waits.
class StartWaits {
 public:
  StartWaits() = default;
  virtual ~StartWaits() = default;
  StartWaits(const StartWaits&) = delete;
  StartWaits& operator=(const StartWaits&) = delete;

  /// Waits until `is_there()`, for a member that has something left to do; `purpose` goes into messages, as "to recycle
  /// staging". Throws the team's failure.
  virtual void await_member(int member, const std::string& purpose, const std::function<bool()>& is_there) = 0;
  /// Ends all operations in flight. Throws Error{no_resource} while persistent operations hold plans, or the team's
  /// failure.
  virtual void finish_all() = 0;
};

}  // namespace torii
