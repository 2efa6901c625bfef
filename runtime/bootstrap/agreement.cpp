// SPDX-License-Identifier: Apache-2.0
// Adds a frame to each all-gather, and turns the failure of one rank into the same error on all ranks.
#include "runtime/bootstrap/agreement.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

namespace torii {

/// The state of a rank, and its value if it is short. It fits into the line of a team's message.
struct Agreement::Frame {
  static constexpr std::size_t kDataBytes = 40;
  Says says;
  std::uint32_t unused;
  std::uint64_t bytes;
  std::array<std::byte, kDataBytes> data;
};

struct Agreement::Trouble {
  std::int32_t status;
  std::int32_t rank;
  std::array<char, 504> text;
};

namespace {

Error as_error(const std::exception& error) {
  if (const auto* const own = dynamic_cast<const Error*>(&error)) return *own;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {Status::no_resource, "out of memory"};
  return {Status::internal, error.what()};
}

template <class Value>
std::span<std::byte> bytes_of(Value* values, int count) {
  return std::as_writable_bytes(std::span(values, static_cast<std::size_t>(count)));
}

}  // namespace

// The last element of each array is this rank's own.
Agreement::Agreement(Bootstrap& outer)
    : plain_(outer.plain()),
      frames_(new Frame[static_cast<std::size_t>(outer.ranks()) + 1]),
      troubles_(new Trouble[static_cast<std::size_t>(outer.ranks()) + 1]) {
  if (&outer == &plain_) outer.begin();
}

Agreement::~Agreement() = default;

void Agreement::gather_plainly(std::span<const std::byte> mine, std::span<std::byte> all) {
  try {
    plain_.all_gather(mine, all);
  } catch (...) {
    is_broken_ = true;
    throw;
  }
}

void Agreement::exchange_in_vain(std::span<const std::byte> mine, std::span<std::byte> all) noexcept {
  try {
    plain_.all_gather(mine, all);
  } catch (const std::exception&) {
    return;  // only the first failure is reported
  }
}

void Agreement::gather_frames(Says says, std::span<const std::byte> mine) {
  Frame& own = frames_[static_cast<std::size_t>(ranks())];
  own = {says, 0, mine.size(), {}};
  std::ranges::copy(mine.first(std::min(mine.size(), Frame::kDataBytes)), own.data.begin());
  gather_plainly(bytes_of(&own, 1), bytes_of(frames_.get(), ranks()));
  const std::span frames(frames_.get(), static_cast<std::size_t>(ranks()));
  if (std::ranges::find(frames, Says::failed, &Frame::says) != frames.end()) {
    if (says == Says::failed) return;
    is_refused_ = true;
    settle(nullptr);
  }
  for (std::size_t rank = 1; rank < frames.size(); ++rank) {
    if (frames[rank].says == frames[0].says && frames[rank].bytes == frames[0].bytes) continue;
    verdict_.emplace(Status::mismatch,
                     "rank " + std::to_string(rank) + " exchanges " + std::to_string(frames[rank].bytes) +
                         " bytes, rank 0 " + std::to_string(frames[0].bytes) + ": they are at different steps",
                     static_cast<int>(rank));
    throw Error(*verdict_);
  }
}

void Agreement::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (verdict_) throw Error(*verdict_);
  const bool is_long = mine.size() > Frame::kDataBytes;
  try {
    gather_frames(Says::value, mine);
  } catch (const Error&) {
    // The other ranks gather the long value next, and learn of this rank's failure only after that.
    if (is_broken_ && is_long && plain_.may_fail_alone()) exchange_in_vain(mine, all);
    throw;
  }
  if (is_long) {
    gather_plainly(mine, all);
    return;
  }
  for (std::size_t rank = 0; rank * mine.size() < all.size(); ++rank) {
    std::ranges::copy(std::span(frames_[rank].data).first(mine.size()), all.subspan(rank * mine.size()).begin());
  }
}

void Agreement::conclude() {
  if (verdict_) throw Error(*verdict_);
  try {
    gather_frames(Says::done, {});
  } catch (const Error& error) {
    if (verdict_) throw;
    // If another rank refused, no rank has succeeded and no rank calls decide().
    if (!is_refused_ && decide(false)) return;
    is_unsettled_ = true;
    throw;
  }
  (void)decide(true);
}

bool Agreement::decide(bool agreed) {
  try {
    return plain_.decide(agreed);
  } catch (const Error& error) {
    verdict_.emplace(error);
    throw;
  }
}

void Agreement::fail(const std::exception& error) {
  const Error own = as_error(error);
  if (verdict_) throw Error(*verdict_);
  if (is_unsettled_) throw OutcomeUnknown(own.status(), own.what(), own.rank());
  const bool misses_a_rank =
      own.status() == Status::timeout || (own.status() == Status::peer_lost && !plain_.notices_deaths());
  if (misses_a_rank || (is_broken_ && !plain_.may_fail_alone())) throw Error(own);
  try {
    gather_frames(Says::failed, {});
    settle(&own);
  } catch (const std::exception&) {
    if (verdict_) throw Error(*verdict_);
    if (plain_.notices_deaths()) throw;  // it names one dead rank on all
    // The others may have heard of it, and say it so.
    throw Error(own.status(), "rank " + std::to_string(rank()) + ": " + own.what(), rank());
  }
}

/// Called on all ranks after some have failed: gathers the reasons and throws.
void Agreement::settle(const Error* own) {
  const std::span troubles(troubles_.get(), static_cast<std::size_t>(ranks()));
  Trouble& mine = troubles_[troubles.size()];
  mine = {};
  if (own != nullptr) {
    mine.status = static_cast<std::int32_t>(own->status());
    mine.rank = own->rank();
    std::strncpy(mine.text.data(), own->what(), mine.text.size() - 1);
  }
  gather_plainly(bytes_of(&mine, 1), bytes_of(troubles_.get(), ranks()));
  const auto first = std::ranges::find_if(troubles, [](const Trouble& one) { return one.status != 0; });
  if (first == troubles.end()) throw Error(Status::internal, "a rank has failed and does not say why");
  const bool alike = std::ranges::all_of(
      troubles, [&](const Trouble& one) { return one.status == first->status && one.text == first->text; });
  const auto failing = static_cast<int>(first - troubles.begin());
  const std::string text(first->text.data(), strnlen(first->text.data(), first->text.size()));
  // A failure that is the same on all ranks names no rank.
  if (alike) {
    verdict_.emplace(static_cast<Status>(first->status), text, first->rank);
  } else {
    verdict_.emplace(static_cast<Status>(first->status), "rank " + std::to_string(failing) + ": " + text, failing);
  }
  throw Error(*verdict_);
}

}  // namespace torii
