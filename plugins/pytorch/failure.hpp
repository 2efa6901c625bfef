// SPDX-License-Identifier: Apache-2.0
// What a failed operation throws into PyTorch.
#pragma once

#include <torii/torii.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace torii_torch {

/// A failed operation. what() names this rank, the operation and the reason; the package makes the classes of
/// torii.torch of it, which are RuntimeErrors as PyTorch's own are.
class Failure : public std::runtime_error {
 public:
  Failure(torii_status status, const std::string& text, std::string reason = {}, std::vector<int> lost = {})
      : std::runtime_error(text), status_(status), reason_(std::move(reason)), lost_(std::move(lost)) {}
  torii_status status() const noexcept { return status_; }
  const std::string& reason() const noexcept { return reason_; }   ///< of torii; empty: none that names a rank
  const std::vector<int>& lost() const noexcept { return lost_; }  ///< members that are known to be lost

 private:
  torii_status status_;
  std::string reason_;
  std::vector<int> lost_;
};

}  // namespace torii_torch
