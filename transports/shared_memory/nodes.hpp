// SPDX-License-Identifier: Apache-2.0
// Which ranks of a job are on one node, where they can share memory, and which are on one machine.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/settings.hpp"
#include "runtime/bootstrap/bootstrap.hpp"

namespace torii::shared_memory {

/// Copies into a field of fixed length, cut if necessary. The field was zero and stays terminated.
template <std::size_t Length>
void copy_text(std::string_view text, std::array<char, Length>& to) {
  std::copy_n(text.begin(), std::min(text.size(), Length - 1), to.begin());
}

struct HostCard;  // what every rank tells about where it runs

/// Equal on all ranks, except for what it says of the own rank. Made once per context; then immutable.
class Nodes {
 public:
  /// `separate`: every rank is a node of its own, even if it could share memory.
  enum class Rule { shared, separate };

  /// Collective. Ranks share a node if they run on one machine, in one network, IPC and user namespace, as one user,
  /// with equal `name` (TORII_NODE; at most kNameBytesMax bytes). Below `root` the kernel says how much CPU time this
  /// rank may use, and which CPUs share a cache.
  explicit Nodes(Bootstrap& bootstrap, std::string_view name = {}, Rule rule = Rule::shared,
                 const std::filesystem::path& root = "/");
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  static constexpr std::size_t kNameBytesMax = kNodeBytesMax;

  int ranks() const noexcept { return static_cast<int>(node_of_.size()); }
  /// Nodes are numbered from 0 in the order of their first ranks.
  int count() const noexcept { return count_; }
  int node(int rank) const noexcept { return node_of_[static_cast<std::size_t>(rank)]; }
  bool is_own(int rank) const noexcept { return node(rank) == node(rank_); }
  /// Ranks of the own node, the own one included.
  int own_ranks() const noexcept;
  /// The most ranks of any node.
  int most_ranks() const noexcept;
  /// The number of the last cache to which the rank is bound; ranks of one node with equal numbers share it. -1: none.
  int cache(int rank) const noexcept;
  const std::string& host(int rank) const noexcept { return hosts_[static_cast<std::size_t>(rank)]; }
  /// Throws Error{unsupported} naming two ranks and their hosts if there are several nodes.
  void check_single() const;

  /// Whether this machine has more ranks than CPUs in the union of the sets that they may run on. Also true if one of
  /// its control groups has more ranks than its quota grants CPUs.
  bool oversubscribed() const noexcept { return oversubscribed_; }
  /// All ranks reach each other over the loopback interface.
  bool loopback_reaches_all() const noexcept { return loopback_reaches_all_; }
  /// The rank's process as this one sees it; 0 if it runs on another machine or in another process namespace.
  pid_t visible_pid(int rank) const noexcept;
  /// No other rank is a thread of this process.
  bool alone_in_process() const noexcept;

 private:
  std::string place_text(int rank) const;

  int rank_;
  int count_ = 0;
  bool oversubscribed_ = false;
  bool loopback_reaches_all_ = true;
  std::vector<HostCard> cards_;
  std::vector<int> node_of_;
  std::vector<std::string> hosts_;
};

}  // namespace torii::shared_memory
