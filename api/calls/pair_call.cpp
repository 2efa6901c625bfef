// SPDX-License-Identifier: Apache-2.0
// The text of a send or a receive in messages.
#include "api/calls/pair_call.hpp"

namespace torii {

std::string pair_text(const PairCall& call) {
  std::string text = call.sends ? "send of " : "receive of up to ";
  text += std::to_string(call.count) + " x " + std::string(name(call.type));
  text += call.tag == kAnyTag ? ", any tag" : ", tag " + std::to_string(call.tag);
  if (call.peer == kAnyRank) return text + ", from any rank";
  return text + (call.sends ? ", to rank " : ", from rank ") + std::to_string(call.peer);
}

}  // namespace torii
