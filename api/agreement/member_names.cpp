// SPDX-License-Identifier: Apache-2.0
// The texts of one member and of many.
#include "api/agreement/member_names.hpp"

namespace torii {
namespace {

constexpr int kNamedMost = 4;

}  // namespace

std::string member_text(int member, std::string_view host) {
  return "rank " + std::to_string(member) + " on host " + std::string(host);
}

void MemberNames::add(int member, std::string_view host) {
  if (count_ == 0) lowest_ = member;
  if (count_ < kNamedMost) named_ += (count_ == 0 ? "" : ", ") + member_text(member, host);
  ++count_;
}

std::string MemberNames::text() const {
  return count_ > kNamedMost ? named_ + " and " + std::to_string(count_ - kNamedMost) + " more" : named_;
}

}  // namespace torii
