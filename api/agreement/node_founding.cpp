// SPDX-License-Identifier: Apache-2.0
// Opens or enters a founding, waits for the others, and takes the verdict.
#include "api/agreement/node_founding.hpp"

#include <algorithm>

namespace torii {

void NodeFounding::ring_others() noexcept {
  for (int member = 0; member < ranks(); ++member) {
    if (member != rank_) host_.ring(rank_of(member));
  }
}

void NodeFounding::leave() noexcept {
  if (seat_) seat_->leave();
  seat_.reset();
}

bool NodeFounding::end_with(const FoundingFailure& failure) noexcept {
  failure_ = failure;
  leave();
  return false;
}

bool NodeFounding::fail(const FoundingFailure& failure) noexcept {
  const bool has_failed = seat_->fail(failure);
  ring_others();
  return has_failed;
}

bool NodeFounding::open(std::uint64_t offset, const Trouble& trouble) noexcept {
  FoundingFailure refusal = {};
  if (trouble.is_there()) refusal = host_.refusal(trouble);
  const auto still_idle = [](void*) { return true; };  // nobody rings when an entry is free
  const auto has_ended = [](void* data, int place) {
    const auto& self = *static_cast<NodeFounding*>(data);
    const auto& places = self.terms_.rank_places;
    return self.host_.has_ended(static_cast<int>(std::ranges::find(places, place) - places.begin()));
  };
  const auto open_one = [&] {
    seat_ = own_->open(terms_, offset, trouble.is_there() ? &refusal : nullptr, host_.late_ns());
    return seat_.has_value();
  };
  host_.begin_wait();
  while (!open_one()) {
    if (!host_.pause(still_idle, nullptr)) continue;
    own_->make_room(host_.now_ns(), has_ended, this);
    if (host_.is_over() && !open_one()) return end_with(host_.no_room());
    if (seat_) break;
  }
  ring_others();
  return true;
}

bool NodeFounding::is_of_skipped_call() const noexcept {
  return seat_->verdict() == FoundingVerdict::failed && !std::ranges::equal(seat_->members(), terms_.members);
}

bool NodeFounding::enter(const Trouble& trouble) noexcept {
  const int place = place_of(rank_);
  const auto still_idle = [](void* data) {
    const auto& self = *static_cast<NodeFounding*>(data);
    return !self.board_.awaits(self.terms_.number, self.place_of(self.rank_));
  };
  host_.begin_wait();
  for (;;) {
    seat_ = board_.enter(terms_.number, place);
    if (seat_ && !is_of_skipped_call()) return true;
    leave();
    if (!host_.pause(still_idle, this)) continue;
    // A founding that a dead opener has opened still counts.
    const bool is_lost = !host_.lives(rank_of(opener_));
    if (board_.awaits(terms_.number, place)) continue;
    MemberSet absent = {};
    absent.add(opener_);
    if (is_lost || host_.is_over()) {
      return end_with(trouble.is_there() ? host_.refusal(trouble)
                      : is_lost          ? host_.lost(opener_)
                                         : host_.late(absent, false));
    }
  }
}

bool NodeFounding::come(std::uint64_t offset, const Trouble& trouble) noexcept {
  if (own_ != nullptr) {
    if (!open(offset, trouble)) return false;
  } else {
    if (!enter(trouble)) return false;
    if (trouble.is_there()) {
      (void)fail(host_.refusal(trouble));
    } else if (!std::ranges::equal(seat_->members(), terms_.members)) {
      (void)fail(host_.other_members(seat_->members()));
    } else if (seat_->digest() != terms_.digest) {
      (void)fail(host_.other_text(seat_->text()));
    } else {
      seat_->tell_come(offset);
    }
  }
  return wait_for_all(Step::come);
}

bool NodeFounding::settle(const Trouble& trouble) noexcept {
  if (trouble.is_there()) {
    (void)fail(host_.refusal(trouble));
  } else {
    seat_->tell_made();
  }
  return wait_for_all(Step::make);
}

bool NodeFounding::has_done(Step step, int member) const noexcept {
  return step == Step::come ? seat_->has_come(place_of(member)) : seat_->has_made(place_of(member));
}

/// Whether all members have done the step. Each look begins at the member for which the last one waited.
bool NodeFounding::is_done(Step step) noexcept {
  while (awaited_ < ranks() && has_done(step, awaited_)) ++awaited_;
  return awaited_ == ranks();
}

/// Some sleep until the last member has come, and none knows to be the last. So each that finds all of them rings.
bool NodeFounding::wait_for_all(Step step) noexcept {
  struct Look {
    NodeFounding& self;
    Step step;
  } look{*this, step};
  const auto still_idle = [](void* data) {
    const Look& at = *static_cast<Look*>(data);
    return at.self.seat_->verdict() == FoundingVerdict::open && !at.self.is_done(at.step);
  };
  awaited_ = 0;
  host_.begin_wait();
  for (bool looks = false;;) {
    const bool have_all = is_done(step);
    if (have_all && step == Step::make) seat_->conclude();
    if (have_all) ring_others();
    const FoundingVerdict verdict = seat_->verdict();
    if (verdict != FoundingVerdict::open) {
      // Before this member has made its object, nobody makes the verdict `made`.
      const bool is_made = verdict == FoundingVerdict::made && step == Step::make;
      if (!is_made) failure_ = seat_->failure();
      leave();
      return is_made;
    }
    if (have_all) return true;
    // A founding that has failed has a verdict now.
    looks = (!looks || !misses_any(step)) && host_.pause(still_idle, &look);
  }
}

/// Whether the founding fails since members are dead or late; if there is a verdict already, it counts.
bool NodeFounding::misses_any(Step step) noexcept {
  MemberSet absent = {};
  int lost = -1;
  for (int member = 0; member < ranks(); ++member) {
    if (has_done(step, member)) continue;
    // The last step of a dead member still counts.
    if (lost < 0 && !host_.lives(rank_of(member)) && !has_done(step, member)) lost = member;
    absent.add(member);
  }
  if (absent.empty() || (lost < 0 && !host_.is_over())) return false;
  if (!fail(lost >= 0 ? host_.lost(lost) : host_.late(absent, step == Step::make))) return true;
  for (int member = 0; member < ranks(); ++member) {
    if (!absent.has(member) || (lost >= 0 && member != lost)) continue;
    seat_->excuse(place_of(member), host_.has_ended(rank_of(member)));
  }
  return true;
}

}  // namespace torii
