// SPDX-License-Identifier: Apache-2.0
// Finds and keeps classes.
#include "api/context/known_classes.hpp"

#include <algorithm>

namespace torii {
namespace {

constexpr std::size_t kClassesMax = 256;

}  // namespace

std::shared_ptr<const ClassPlan> KnownClasses::find(const ClassKey& key, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(classes_.rbegin(), classes_.rend(), [&](const KnownClass& one) { return one.serves(key, bytes); });
  return known == classes_.rend() ? nullptr : known->selected;
}

void KnownClasses::add(const KnownClass& known) {
  const std::lock_guard lock(mutex_);
  if (classes_.size() >= kClassesMax) classes_.pop_front();
  classes_.push_back(known);
}

}  // namespace torii
