// SPDX-License-Identifier: Apache-2.0
// Division of a vector into blocks and segments.
#include "runtime/plan/layout.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "runtime/base/status.hpp"

namespace torii {
namespace {

constexpr std::size_t kKiB = 1024;

/// One run of granules of equal length.
struct GranuleRun {
  std::size_t first_index;
  std::size_t offset_bytes;
  std::size_t length_bytes;
};
constexpr std::array<GranuleRun, 3> kGranuleRuns = {{
    {0, 0, 4 * kKiB},
    {16, 64 * kKiB, 16 * kKiB},
    {76, 1024 * kKiB, 64 * kKiB},
}};
static_assert(kGranuleRuns[1].first_index == kGranuleRuns[1].offset_bytes / kGranuleRuns[0].length_bytes);
static_assert(kGranuleRuns[2].first_index - kGranuleRuns[1].first_index ==
              (kGranuleRuns[2].offset_bytes - kGranuleRuns[1].offset_bytes) / kGranuleRuns[1].length_bytes);

/// How many of the first `granules` granules belong to `block` of `blocks`.
std::size_t granules_of_block(std::size_t granules, std::size_t block, std::size_t blocks) {
  return (granules + blocks - 1 - block) / blocks;
}

/// Bytes that `block` has in its granules of index below `granules`.
std::size_t bytes_before(std::size_t granules, std::size_t block, std::size_t blocks) {
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < kGranuleRuns.size(); ++r) {
    const std::size_t first = std::min(granules, kGranuleRuns[r].first_index);
    const std::size_t end =
        r + 1 < kGranuleRuns.size() ? std::min(granules, kGranuleRuns[r + 1].first_index) : granules;
    bytes += (granules_of_block(end, block, blocks) - granules_of_block(first, block, blocks)) *
             kGranuleRuns[r].length_bytes;
  }
  return bytes;
}

}  // namespace

Granule granule_at(std::size_t index) noexcept {
  const GranuleRun* run = &kGranuleRuns[0];
  for (const GranuleRun& candidate : kGranuleRuns) {
    if (index >= candidate.first_index) run = &candidate;
  }
  return {index, run->offset_bytes + (index - run->first_index) * run->length_bytes, run->length_bytes};
}

Granule granule_of(std::size_t offset_bytes) noexcept {
  const GranuleRun* run = &kGranuleRuns[0];
  for (const GranuleRun& candidate : kGranuleRuns) {
    if (offset_bytes >= candidate.offset_bytes) run = &candidate;
  }
  return granule_at(run->first_index + (offset_bytes - run->offset_bytes) / run->length_bytes);
}

Layout::Layout(Dealing dealing, std::size_t total_bytes, int blocks, std::size_t segment_bytes,
               std::size_t stride_bytes)
    : dealing_(dealing),
      blocks_(blocks),
      total_bytes_(total_bytes),
      segment_bytes_(segment_bytes),
      stride_bytes_(stride_bytes) {
  if (blocks < 1) throw Error(Status::invalid_argument, "a vector of " + std::to_string(blocks) + " blocks");
  if (segment_bytes < 64 || segment_bytes % 64 != 0) {
    throw Error(Status::invalid_argument, "a segment of " + std::to_string(segment_bytes) +
                                              " bytes; it must be a multiple of 64 and at least 64");
  }
  const auto count = static_cast<std::size_t>(blocks);
  const std::size_t least_bytes = total_bytes / count + (total_bytes % count != 0 ? 1 : 0);
  if (stride_bytes_ == 0) stride_bytes_ = std::max<std::size_t>((least_bytes + 127) / 128 * 128, 128);
  if (dealing == Dealing::block && stride_bytes_ < least_bytes) {
    throw Error(Status::invalid_argument, std::to_string(blocks) + " blocks of " + std::to_string(stride_bytes) +
                                              " bytes do not hold a vector of " + std::to_string(total_bytes));
  }
  longest_bytes_ = std::min(stride_bytes_, total_bytes);
  if (dealing == Dealing::block_cyclic) {
    longest_bytes_ = 0;
    for (int block = 0; block < blocks; ++block) longest_bytes_ = std::max(longest_bytes_, cyclic_block_bytes(block));
  }
  const std::size_t segments = longest_bytes_ / segment_bytes + (longest_bytes_ % segment_bytes != 0 ? 1 : 0);
  segments_ = std::max<std::int64_t>(static_cast<std::int64_t>(segments), 1);
}

Layout::Layout(std::size_t total_bytes, int blocks, std::size_t segment_bytes, std::size_t stride_bytes, Parts parts)
    : Layout(Dealing::block, total_bytes, parts.count < 1 ? 0 : blocks / parts.count, segment_bytes, stride_bytes) {
  const auto count = static_cast<std::size_t>(parts.count);
  if (blocks % parts.count != 0 || (parts.count > 1 && parts.length_bytes * count < stride_bytes)) {
    throw Error(Status::invalid_argument, std::to_string(parts.count) + " parts of " +
                                              std::to_string(parts.length_bytes) + " bytes do not divide " +
                                              std::to_string(blocks) + " blocks, or a stride of " +
                                              std::to_string(stride_bytes) + " bytes");
  }
  blocks_ = blocks;
  parts_ = parts;
  if (parts.count == 1) return;
  longest_bytes_ = std::min({parts.length_bytes, stride_bytes_, total_bytes});
  segments_ =
      std::max<std::int64_t>(static_cast<std::int64_t>((longest_bytes_ + segment_bytes - 1) / segment_bytes), 1);
}

Layout::Layout(std::vector<std::size_t> offsets, std::size_t segment_bytes)
    : Layout(Dealing::block, offsets.empty() ? 0 : offsets.back(), static_cast<int>(offsets.size()) - 1,
             segment_bytes) {
  longest_bytes_ = 0;
  for (std::size_t block = 0; block + 1 < offsets.size(); ++block) {
    if (offsets[block + 1] < offsets[block] || offsets[0] != 0) {
      throw Error(Status::invalid_argument,
                  "block " + std::to_string(block) + " is from byte " + std::to_string(offsets[block]) + " to " +
                      std::to_string(offsets[block + 1]) + "; blocks begin at 0 and follow each other");
    }
    longest_bytes_ = std::max(longest_bytes_, offsets[block + 1] - offsets[block]);
  }
  segments_ =
      std::max<std::int64_t>(static_cast<std::int64_t>((longest_bytes_ + segment_bytes - 1) / segment_bytes), 1);
  offsets_ = std::make_shared<const std::vector<std::size_t>>(std::move(offsets));
}

std::size_t Layout::segment_length_bytes(int block, std::int64_t segment) const noexcept {
  if (dealing_ == Dealing::block || blocks_ == 1) return even_piece(block, segment).length_bytes;
  const std::size_t first_bytes = static_cast<std::size_t>(segment) * segment_bytes_;
  const std::size_t block_bytes = cyclic_block_bytes(block);
  return first_bytes >= block_bytes ? 0 : std::min(segment_bytes_, block_bytes - first_bytes);
}

Piece Layout::even_piece(int block, std::int64_t segment) const noexcept {
  if (offsets_ != nullptr) {
    const auto number = static_cast<std::size_t>(block);
    const std::size_t end_bytes = (*offsets_)[number + 1];
    const std::size_t offset_bytes = (*offsets_)[number] + static_cast<std::size_t>(segment) * segment_bytes_;
    if (offset_bytes >= end_bytes) return {0, 0};
    return {offset_bytes, std::min(segment_bytes_, end_bytes - offset_bytes)};
  }
  // A block-cyclic layout comes here only if it has one block, which is the whole vector.
  const bool whole = dealing_ == Dealing::block_cyclic;
  const std::size_t stride_bytes = whole ? total_bytes_ : stride_bytes_;
  const bool divided = parts_.count > 1;
  const auto part = static_cast<std::size_t>(divided ? block % parts_.count : 0);
  const std::size_t stride_begin_bytes =
      static_cast<std::size_t>(divided ? block / parts_.count : block) * stride_bytes;
  const std::size_t length_bytes = divided ? parts_.length_bytes : stride_bytes;
  const std::size_t begin_bytes = stride_begin_bytes + part * length_bytes;
  const std::size_t first_bytes = static_cast<std::size_t>(segment) * segment_bytes_;
  const std::size_t end_bytes = std::min({begin_bytes + length_bytes, stride_begin_bytes + stride_bytes, total_bytes_});
  if (first_bytes >= length_bytes || begin_bytes + first_bytes >= end_bytes) return {0, 0};
  const std::size_t offset_bytes = begin_bytes + first_bytes;
  return {offset_bytes, std::min(segment_bytes_, end_bytes - offset_bytes)};
}

Piece Layout::span(int first, int last) const noexcept {
  if (dealing_ == Dealing::block_cyclic || blocks_ == 1) return {0, total_bytes_};
  const auto begin_bytes = [this](int block) {
    if (offsets_ != nullptr) return (*offsets_)[static_cast<std::size_t>(block)];
    const auto stride = static_cast<std::size_t>(block / parts_.count);
    const auto part = static_cast<std::size_t>(block % parts_.count);
    return std::min(std::min(stride * stride_bytes_ + part * parts_.length_bytes, (stride + 1) * stride_bytes_),
                    total_bytes_);
  };
  const std::size_t from_bytes = begin_bytes(first);
  const std::size_t to_bytes = last + 1 == blocks_ ? total_bytes_ : begin_bytes(last + 1);
  return {from_bytes, to_bytes - from_bytes};
}

int Layout::block_of(std::size_t offset_bytes) const noexcept {
  if (blocks_ == 1) return 0;
  if (offsets_ != nullptr) {
    // If several blocks begin at one place, all but the last are empty.
    return static_cast<int>(std::upper_bound(offsets_->begin(), offsets_->end(), offset_bytes) - offsets_->begin()) - 1;
  }
  if (dealing_ == Dealing::block_cyclic) {
    return static_cast<int>(granule_of(offset_bytes).index % static_cast<std::size_t>(blocks_));
  }
  const std::size_t stride = offset_bytes / stride_bytes_;
  if (parts_.count == 1) return static_cast<int>(stride);
  return static_cast<int>(stride * static_cast<std::size_t>(parts_.count) +
                          offset_bytes % stride_bytes_ / parts_.length_bytes);
}

Piece Layout::cyclic_piece(int block, std::size_t block_offset_bytes, std::size_t most_bytes) const noexcept {
  const auto first = static_cast<std::size_t>(block);
  const auto blocks = static_cast<std::size_t>(blocks_);
  std::size_t left_bytes = block_offset_bytes;
  for (std::size_t r = 0;; ++r) {
    const GranuleRun& run = kGranuleRuns[r];
    const std::size_t before = granules_of_block(run.first_index, first, blocks);
    if (r + 1 < kGranuleRuns.size()) {
      const std::size_t granules = granules_of_block(kGranuleRuns[r + 1].first_index, first, blocks) - before;
      if (left_bytes >= granules * run.length_bytes) {
        left_bytes -= granules * run.length_bytes;
        continue;
      }
    }
    const Granule granule = granule_at(first + (before + left_bytes / run.length_bytes) * blocks);
    const std::size_t inside_bytes = left_bytes % run.length_bytes;
    return {granule.offset_bytes + inside_bytes, std::min(run.length_bytes - inside_bytes, most_bytes)};
  }
}

std::size_t Layout::cyclic_block_bytes(int block) const noexcept {
  if (total_bytes_ == 0) return 0;
  const auto number = static_cast<std::size_t>(block);
  const auto blocks = static_cast<std::size_t>(blocks_);
  const Granule last = granule_of(total_bytes_ - 1);
  const std::size_t cut_bytes = last.index % blocks == number ? total_bytes_ - last.offset_bytes : 0;
  return bytes_before(last.index, number, blocks) + cut_bytes;
}

}  // namespace torii
