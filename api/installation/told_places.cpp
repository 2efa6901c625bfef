// SPDX-License-Identifier: Apache-2.0
// Tells members of other nodes where this rank has memory for them.
#include "api/installation/told_places.hpp"

#include "runtime/rings/ring_ends.hpp"

namespace torii {

void ToldPlaces::tell(int member, std::uint64_t line_offset, std::uint64_t place) {
  Put line;
  line.peer = members_.at(member).context_rank;
  line.source = reinterpret_cast<const std::byte*>(&place);
  line.bytes = sizeof(place);
  line.signal_offset = line_offset;
  line.target_offset = line_offset + sizeof(std::uint64_t);
  line.signal = kToldSignal;
  line.owner = puts_.count();
  const Status status = members_.transport().put(line);
  if (status == Status::ok) return;
  throw Error(status,
              "the transport failed towards " + members_.text(member) + ": " + members_.transport().failure_text());
}

}  // namespace torii
