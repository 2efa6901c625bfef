// SPDX-License-Identifier: Apache-2.0
// How ranks that are fibers join one job.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.hpp"
#include "transports/fibers/fibers.hpp"

namespace torii::fibers {

/// Where the ranks of one job meet; rank r is fiber r. It must outlive them.
class Meeting {
 public:
  Meeting(Fibers& fibers, int ranks, double timeout_s) : fibers_(fibers), ranks_(ranks), timeout_s_(timeout_s) {}

  int ranks() const noexcept { return ranks_; }
  void all_gather(int rank, std::size_t round, std::span<const std::byte> mine, std::span<std::byte> all);

 private:
  struct Round {
    std::vector<std::vector<std::byte>> parts;
    std::vector<bool> here;
    int came = 0;
    int lost = -1;  ///< the rank by whose end the round has failed, for all
  };
  int missing(const Round& round) const noexcept;

  Fibers& fibers_;
  int ranks_;
  double timeout_s_;
  std::map<std::size_t, Round> rounds_;
};

class MeetingBootstrap final : public Bootstrap {
 public:
  MeetingBootstrap(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const noexcept override { return rank_; }
  int ranks() const noexcept override { return meeting_.ranks(); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_sizes(mine.size(), all.size());
    meeting_.all_gather(rank_, round_++, mine, all);
  }
  bool notices_deaths() const noexcept override { return true; }

 private:
  Meeting& meeting_;
  int rank_;
  std::size_t round_ = 0;
};

}  // namespace torii::fibers
