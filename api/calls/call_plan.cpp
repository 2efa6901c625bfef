// SPDX-License-Identifier: Apache-2.0
// The ends of call plans: here alone they need to know linear programs.
#include "api/calls/call_plan.hpp"

#include "runtime/execution/linear_program.hpp"

namespace torii {

CallPlan::CallPlan() = default;
CallPlan::~CallPlan() = default;
CallPlan::OnChannel::OnChannel() noexcept = default;
CallPlan::OnChannel::OnChannel(OnChannel&&) noexcept = default;
CallPlan::OnChannel& CallPlan::OnChannel::operator=(OnChannel&&) noexcept = default;
CallPlan::OnChannel::~OnChannel() = default;

}  // namespace torii
