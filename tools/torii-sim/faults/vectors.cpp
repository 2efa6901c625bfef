// SPDX-License-Identifier: Apache-2.0
// Vectors of calls in memory of all kinds, filled, compared and sealed.
#include "tools/torii-sim/faults/vectors.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace torii::faults {
namespace {

constexpr int kGuard = 0x5a;
constexpr int kSpoilt = 0xa7;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::size_t kRegionBytes = std::size_t{256} << 10;

}  // namespace

bool Vector::is_guarded() const noexcept {
  if (data == nullptr) return true;
  return std::all_of(data + bytes, data + bytes + kGuardBytes, [](std::byte one) { return one == std::byte{kGuard}; });
}

Vector Vector::of(std::byte* memory, std::size_t bytes) noexcept {
  std::memset(memory + bytes, kGuard, kGuardBytes);
  return {memory, bytes};
}

CallVectors CallVectors::make(const DrawnCall& spec, Place place,
                              const std::function<Vector(std::size_t bytes)>& take) {
  const Overlap overlap = overlap_of(spec, place);
  const bool is_broadcast = spec.kind == CallKind::collective && spec.collective == TORII_BROADCAST;
  const bool has_input = overlap.bytes == 0 && !is_broadcast;
  const Vector input = take(has_input ? input_bytes(spec, place) : 0);
  return {spec, place, input, take(overlap.bytes != 0 ? overlap.bytes : result_bytes(spec, place))};
}

CallVectors::CallVectors(const DrawnCall& spec, Place place, Vector input, Vector result)
    : spec_(spec), place_(place), pieces_{input, result}, input_(input.data), result_(result.data) {
  const Overlap overlap = overlap_of(spec, place);
  if (overlap.bytes == 0) return;
  input_ = result.data + overlap.input;
  result_ = result.data + overlap.result;
}

void CallVectors::fill() {
  const bool is_sent_from_result = spec_.kind == CallKind::collective && spec_.collective == TORII_BROADCAST;
  if (is_sent_from_result && place_.rank != spec_.root % place_.ranks) return;
  const std::vector<std::byte> input = input_of(spec_, place_);
  if (!input.empty()) std::memcpy(is_sent_from_result ? result_ : input_, input.data(), input.size());
}

void CallVectors::fill_anew(std::uint64_t seed) {
  spec_.seed = seed;
  is_sealed_ = false;
  fill();
}

void CallVectors::spoil() noexcept {
  const bool sends_result = spec_.kind == CallKind::collective && spec_.collective == TORII_BROADCAST &&
                            place_.rank == spec_.root % place_.ranks;
  const Vector& piece = pieces_[sends_result ? 1 : 0];
  if (piece.bytes != 0) std::memset(piece.data, kSpoilt, piece.bytes);
}

std::string CallVectors::difference() const {
  for (const Vector& piece : pieces_) {
    if (!piece.is_guarded()) return "bytes behind a vector were written";
  }
  const std::vector<std::byte> expected = expected_result(spec_, place_);
  if (expected.empty() || std::memcmp(expected.data(), result_, expected.size()) == 0) return "";
  const auto [right, wrong] = std::mismatch(expected.begin(), expected.end(), result_);
  std::size_t count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) count += expected[i] != result_[i] ? 1 : 0;
  return std::to_string(count) + " of " + std::to_string(expected.size()) + " bytes, from byte " +
         std::to_string(right - expected.begin()) + " on";
}

void CallVectors::seal() noexcept {
  seal_ = hash();
  is_sealed_ = true;
}

std::uint64_t CallVectors::hash() const noexcept {
  std::uint64_t hash = 0;
  for (const Vector& piece : pieces_) {
    if (piece.data != nullptr) hash = XXH3_64bits_withSeed(piece.data, piece.bytes + Vector::kGuardBytes, hash);
  }
  return hash;
}

RankMemory::~RankMemory() {
  for (torii_region* const region : regions_) expect(torii_deregister(context_, region));
  for (void* const address : arena_memory_) expect(torii_free(context_, address));
}

void RankMemory::expect(torii_status status) const {
  if (status != TORII_OK) job_.fail(rank_, torii_last_error());
}

Vector RankMemory::take(std::size_t bytes, Memory where) {
  if (bytes == 0) return {};
  std::byte* const taken = take_pages(bytes + Vector::kGuardBytes, where);
  return Vector::of(taken != nullptr ? taken : private_memory_.emplace_back(bytes + Vector::kGuardBytes).data(), bytes);
}

/// nullptr: the memory is to be private, or the rank was refused what it asked for.
std::byte* RankMemory::take_pages(std::size_t bytes, Memory where) {
  if (where == Memory::malloced) return nullptr;
  const std::uint64_t refusals = job_.fibers.refusals(rank_);
  const auto check = [&](torii_status status) {
    const bool was_refused = job_.fibers.refusals(rank_) != refusals;
    if (!was_refused || status != TORII_NO_RESOURCE) expect(status);
    return status == TORII_OK;
  };
  if (where == Memory::allocated) {
    void* address = nullptr;
    if (!check(torii_allocate(context_, bytes, &address))) return nullptr;
    arena_memory_.push_back(address);
    return static_cast<std::byte*>(address);
  }
  if (adopted_.bytes < bytes) {
    // Whole pages: whoever adopts the end of a block reads its neighbours, which the address sanitizer refuses. Many
    // vectors share a region, since to adopt one takes as long as a tenth of a history.
    const std::size_t region_bytes = std::max(kRegionBytes, (bytes + kPage - 1) / kPage * kPage);
    void* const pages = std::aligned_alloc(kPage, region_bytes);
    adopted_memory_.emplace_back(pages);
    torii_region* region = nullptr;
    if (check(torii_register(context_, pages, region_bytes, TORII_REGISTER_ADOPT, &region))) regions_.push_back(region);
    adopted_ = {static_cast<std::byte*>(pages), region_bytes};
  }
  std::byte* const taken = adopted_.data;
  const std::size_t taken_bytes = std::min(adopted_.bytes, (bytes + kLine - 1) / kLine * kLine);
  adopted_ = {taken + taken_bytes, adopted_.bytes - taken_bytes};
  return taken;
}

}  // namespace torii::faults
