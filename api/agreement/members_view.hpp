// SPDX-License-Identifier: Apache-2.0
// The answers that a round about the team of survivors needs about the members.
#pragma once

#include <string>
#include <vector>

#include "api/agreement/membership.hpp"
#include "api/agreement/survivors_judge.hpp"

namespace torii {

class MembersView : public RoundView {
 public:
  explicit MembersView(const Membership& members) : members_(members) {}
  int rank() const override { return members_.rank(); }
  int ranks() const override { return members_.ranks(); }
  bool lives(int member) const override { return members_.lives(member); }
  bool may_live(int member) const override { return members_.may_live(member); }
  std::string text(const std::vector<int>& members) const override { return members_.text(members); }

 protected:
  const Membership& members_;
};

}  // namespace torii
