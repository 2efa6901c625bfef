// SPDX-License-Identifier: Apache-2.0
// How a team is made.
#pragma once

#include <cstddef>
#include <string>

namespace torii {

/// How a team is made; empty texts and 0 stand for the context's settings.
struct TeamOptions {
  std::string topology;
  std::string algorithm;
  std::string determinism;
  std::string wire;
  std::size_t segment_bytes = 0;
  std::string tune_table;       ///< JSON
  std::string rank_map = {};    ///< text for with_rank_map(); of the team of all ranks, empty: the setting's
  std::string tree = {};        ///< the content of the file of topology tree:FILE; set by the team
  std::string tree_error = {};  ///< why it could not be read
  /// The topology follows from the caches to which members are bound, in parts of the team too; set by the team.
  bool follows_caches = false;
  int channels = 0;
  // For a team of survivors: the members of the old team that are left out, and whether those that stay may be the
  // fewer.
  const int* without = nullptr;
  int without_count = 0;
  bool allows_minority = false;
  // Members may differ in these.
  bool many_callers = false;
  double timeout_s = 0;
};

/// The option, or the setting where the option is empty.
inline const std::string& first_set(const std::string& option, const std::string& setting) {
  return option.empty() ? setting : option;
}
inline bool is_tree(const std::string& topology) { return topology.starts_with("tree:"); }

}  // namespace torii
