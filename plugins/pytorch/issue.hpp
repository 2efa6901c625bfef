// SPDX-License-Identifier: Apache-2.0
// The way of every collective of a group: make the operation, or refuse it in the order of calls.
#pragma once

#include <exception>
#include <utility>

#include "plugins/pytorch/caller.hpp"
#include "plugins/pytorch/group.hpp"
#include "plugins/pytorch/packing.hpp"

namespace torii_torch {

/// Makes an operation and issues it. If the maker throws, this rank refuses the call.
template <typename CallOptions, typename Maker>
WorkPointer Group::issue(const CallOptions& options, const Maker& make) {
  team_->check_owner();
  Operation operation;
  try {
    operation = make();
  } catch (const std::exception& error) {
    (void)torii_refuse(team_->get(), error.what());
    throw;
  }
  const std::optional<bool> said = said_to_wait(options);
  return issue_operation(std::move(operation), said ? *said : python_caller_waits());
}

}  // namespace torii_torch
