// SPDX-License-Identifier: Apache-2.0
// Members in messages.
#pragma once

#include <string>
#include <string_view>

namespace torii {

/// "rank 3 on host a".
std::string member_text(int member, std::string_view host);

/// Members, ascending, of which a text names the first four: "rank 3 on host a, rank 5 on host b and 9 more".
class MemberNames {
 public:
  void add(int member, std::string_view host);
  int count() const noexcept { return count_; }
  /// -1: there is none.
  int lowest() const noexcept { return lowest_; }
  std::string text() const;

 private:
  int count_ = 0;
  int lowest_ = -1;
  std::string named_;
};

}  // namespace torii
