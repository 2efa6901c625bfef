// SPDX-License-Identifier: Apache-2.0
// Notices of refused calls between nodes, where puts may overtake each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tests/api/agreement/messages_seat.hpp"

namespace torii::tests {
namespace {

std::uint64_t last_refused(std::span<const RefusalNotice> notices) {
  std::uint64_t last = 0;
  for (const RefusalNotice& place : notices) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    if (notice) last = std::max(last, notice->last);
  }
  return last;
}

std::size_t place_of_call(std::span<const RefusalNotice> notices, std::uint64_t sequence) {
  const auto tells = [=](const RefusalNotice& place) {
    const std::optional<RefusalNotice> notice = read_notice(place);
    return notice && notice->last == sequence;
  };
  return static_cast<std::size_t>(std::ranges::find_if(notices, tells) - notices.begin());
}

/// The notice of a run is told anew for each call of it.
TEST(RefusalNotices, OutliveAnOlderOneThatComesLater) {
  play({0, 1}, 16, [](Seat& seat) {
    RefusedCalls calls;
    auto& notices = seat.inbox(1 - seat.rank()).refusals;
    const auto put = [&](std::uint64_t sequence) {
      seat.meet();
      seat.messages().put_refusal(calls.add(sequence, "because"));
      seat.meet();
    };
    put(1);
    for (std::uint64_t sequence = 2; sequence <= 6; ++sequence) {
      const std::size_t place = place_of_call(notices, sequence - 1);
      ASSERT_LT(place, notices.size());
      const RefusalNotice older = notices[place];
      put(sequence);
      const auto kept = notices;
      notices[place] = older;
      EXPECT_EQ(last_refused(notices), sequence);
      // A part of it.
      notices[place].check = kept[place].check + 1;
      EXPECT_EQ(last_refused(notices), sequence);
      notices = kept;
    }
  });
}

}  // namespace
}  // namespace torii::tests
