// SPDX-License-Identifier: Apache-2.0
// The text of a call in messages.
#include "api/calls/call_arguments.hpp"

namespace torii {

std::string call_text(const CallArguments& arguments) {
  std::string text(name(arguments.collective));
  if (arguments.collective == Collective::barrier) return text;
  const bool is_user = combines_by_user(arguments);
  text += " of " +
          (count_on_record(arguments) == kUnequalInRecord ? "unequal blocks" : std::to_string(arguments.count)) +
          " x " + (is_user ? "user type" : std::string(name(arguments.type)));
  if (combines(arguments.collective)) text += ", op " + std::string(op_name(op_number(arguments)));
  if (is_user) text += arguments.commutes ? " that commutes" : " that does not commute";
  if (has_root(arguments.collective)) text += ", root " + std::to_string(arguments.root);
  if (arguments.leaves != nullptr || arguments.told_over_leaves) text += ", over leaves";
  if (arguments.is_packed) text += " (calls of a group in one)";
  return text;
}

std::string timeout_text(double seconds, const std::string& otherwise) {
  return "timeout_seconds is " + std::to_string(seconds) + "; it must be above 0 and at most 1000000, or 0 for " +
         otherwise;
}

}  // namespace torii
