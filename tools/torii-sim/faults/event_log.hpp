// SPDX-License-Identifier: Apache-2.0
// The events of a history, for a picture.
#pragma once

#include <string>
#include <vector>

#include "transports/fibers/fibers.hpp"

namespace torii::faults {

/// One activity of a rank, with its begin and end.
struct Act {
  int rank = 0;
  std::string name;
  fibers::Time begun = 0;
  fibers::Time ended = -1;  ///< -1: it never did
  std::string status = {};  ///< "ok", "timeout"; empty: it did not end
};

/// A put, from the call to its arrival.
struct Arrow {
  int from = 0;
  int to = 0;
  fibers::Time sent = 0;
  fibers::Time arrived = 0;
};

/// Something went wrong.
struct Mark {
  int rank = 0;
  fibers::Time time = 0;
  std::string what;
};

struct EventLog {
  std::vector<Act> acts;
  std::vector<Arrow> arrows;
  std::vector<Mark> marks;
};

}  // namespace torii::faults
