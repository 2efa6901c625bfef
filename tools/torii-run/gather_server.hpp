// SPDX-License-Identifier: Apache-2.0
// The launcher's side of the exchange: collects one part from every rank and sends all parts to all ranks, or the
// reason of a failure.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/deadline.hpp"
#include "runtime/base/descriptor.hpp"
#include "runtime/base/status.hpp"
#include "runtime/bootstrap/job_socket.hpp"

namespace torii::tools {

/// Single-threaded; never blocks. Rounds follow each other: the n-th request of a rank belongs to round n. When a rank
/// has been replaced, or a join has failed, rounds count anew from the first request of each rank's next join.
class GatherServer {
 public:
  using Clock = std::chrono::steady_clock;

  /// One non-blocking stream socket per rank, in rank order.
  explicit GatherServer(std::vector<Descriptor> sockets);

  /// Appends what poll() must watch.
  void watch(std::vector<pollfd>& entries) const;
  /// When serve() has to check whether to give up the open round.
  std::optional<Clock::time_point> deadline() const;
  /// Moves all data that can move, and ends the round if it is complete, hopeless or late.
  void serve();
  /// From now on every round fails and names the rank that ended first; `how` completes "rank 3 ...", e.g. "was ended
  /// by signal 9".
  void rank_ended(int rank, const std::string& how);
  /// After rank_ended(): another process has taken the rank's place. The others' requests fail until they join anew.
  void rank_replaced(int rank, Descriptor socket);

 private:
  using Bytes = std::vector<std::byte>;
  struct Link {
    Descriptor socket;
    Bytes inbox;                            // a request, perhaps not yet whole
    std::shared_ptr<const Bytes> outgoing;  // an answer, perhaps partly sent
    std::size_t sent = 0;
    std::string ended;                     // how the rank ended; empty while it runs
    std::shared_ptr<const Bytes> verdict;  // of a failed join: the answer to all requests until the rank joins anew
    bool knows_verdict = false;            // it has had that answer, or has left the join: its next join is a new one
    bool needs_context = false;            // only the join of a new context is one
  };

  void receive(Link& link);
  void send(Link& link);
  const job_socket::Request* part_of(const Link& link) const;
  void answer_verdicts();
  void end_round();
  void answer(const std::shared_ptr<const Bytes>& bytes);
  void answer(Link& link, const std::shared_ptr<const Bytes>& bytes);
  void fail(Status status, int rank, const std::string& sentence);

  std::vector<Link> links_;
  int first_ended_ = -1;  // the one to name: later ends may be its consequence
  std::optional<Deadline> deadline_;
};

}  // namespace torii::tools
