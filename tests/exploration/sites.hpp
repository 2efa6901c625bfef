// SPDX-License-Identifier: Apache-2.0
// Places in the code under test at which it touches shared memory, and the memory order that each asks for. A site is
// an instruction: a function that is inlined twice has two of each. Any of them can be weakened without a new build.
#pragma once

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace torii::exploration {

enum class Access { load, store, change, fence, past_caches_fence, plain };

class Sites {
 public:
  /// The order that this site has now: `asked`, or relaxed if the site is weakened. A fence that is weakened is none.
  std::memory_order order(const void* site, Access access, std::memory_order asked);
  /// Only these sites are weakened from now on.
  void weaken(std::set<const void*> sites) { weakened_ = std::move(sites); }

  /// Sites that have been reached and that promise an order, by what a reader of the code would call them: the
  /// functions and lines from the access outwards, up to the first that is no helper.
  struct Group {
    std::string name;
    Access access;
    std::memory_order order;
    std::set<const void*> sites;
  };
  std::vector<Group> ordered() const;
  void forget_reached() { reached_.clear(); }

 private:
  struct Site {
    Access access;
    std::memory_order order;
  };
  std::map<const void*, Site> reached_;
  std::set<const void*> weakened_;
};

/// Function and line of an instruction before this return address: the innermost first, then the functions into which
/// it was inlined.
std::vector<std::string> lines_of(const void* return_address);
/// The lines for a message, on one line.
std::string describe_site(const void* return_address);
const char* name(std::memory_order order);

}  // namespace torii::exploration
