// SPDX-License-Identifier: Apache-2.0
// The text of a call in messages.
#include "api/calls/call_description.hpp"

namespace torii {

std::string call_text(const CallSpec& spec) {
  // The binding names all fields, so a new one does not compile until it has a place here, or a reason for none: tag,
  // content and the other marks are the library's own numbers, and the size of a user's element is not told to peers.
  const auto& [collective, type, op, marks, root, count, user_bytes, tag, content] = spec;
  std::string text(name(collective));
  if (collective == Collective::barrier) return text;
  const bool is_user = combines_by_user(spec);
  text += " of " + (count_on_record(spec) == kUnequalInRecord ? "unequal blocks" : std::to_string(count)) + " x " +
          (is_user ? "user type" : std::string(name(type)));
  if (combines(collective)) text += ", op " + std::string(name(op));
  if (is_user) text += spec.has(CallMark::ordered) ? " that does not commute" : " that commutes";
  if (has_root(collective)) text += ", root " + std::to_string(root);
  if (spec.has(CallMark::leaves)) text += ", over leaves";
  if (spec.has(CallMark::packed)) text += " (calls of a group in one)";
  return text;
}

std::string timeout_text(double seconds, const std::string& otherwise) {
  return "timeout_seconds is " + std::to_string(seconds) + "; it must be above 0 and at most 1000000, or 0 for " +
         otherwise;
}

}  // namespace torii
