// SPDX-License-Identifier: Apache-2.0
// Layouts: every byte of a vector belongs to one block and one segment, and the granule of a byte depends on its
// position only.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/status.hpp"
#include "runtime/plan/layout.hpp"
#include "tests/support/test_run.hpp"

namespace torii::tests {
namespace {

constexpr std::size_t kKiB = 1024;

TEST(Granule, TableByPosition) {
  struct Row {
    std::size_t offset_bytes;
    std::size_t index;
    std::size_t first_bytes;
    std::size_t length_bytes;
  };
  const Row rows[] = {
      {0, 0, 0, 4 * kKiB},
      {4 * kKiB - 1, 0, 0, 4 * kKiB},
      {4 * kKiB, 1, 4 * kKiB, 4 * kKiB},
      {64 * kKiB - 1, 15, 60 * kKiB, 4 * kKiB},
      {64 * kKiB, 16, 64 * kKiB, 16 * kKiB},
      {80 * kKiB, 17, 80 * kKiB, 16 * kKiB},
      {1024 * kKiB - 1, 75, 1008 * kKiB, 16 * kKiB},
      {1024 * kKiB, 76, 1024 * kKiB, 64 * kKiB},
      {1088 * kKiB, 77, 1088 * kKiB, 64 * kKiB},
      {std::size_t{1} << 40, 16777276, std::size_t{1} << 40, 64 * kKiB},
  };
  for (const Row& row : rows) {
    const Granule granule = granule_of(row.offset_bytes);
    EXPECT_EQ(granule.index, row.index) << row.offset_bytes;
    EXPECT_EQ(granule.offset_bytes, row.first_bytes) << row.offset_bytes;
    EXPECT_EQ(granule.length_bytes, row.length_bytes) << row.offset_bytes;
  }
}

TEST(Granule, EachEndsWhereTheNextBegins) {
  std::size_t offset_bytes = 0;
  for (std::size_t index = 0; index < 1000; ++index) {
    const Granule granule = granule_at(index);
    ASSERT_EQ(granule.index, index);
    ASSERT_EQ(granule.offset_bytes, offset_bytes);
    ASSERT_EQ(granule_of(offset_bytes).index, index);
    offset_bytes += granule.length_bytes;
    ASSERT_EQ(granule_of(offset_bytes - 1).index, index);
  }
}

/// Walks all pieces of a layout; fails unless they cover the vector once and agree with the layout's own figures.
void expect_covers_once(const Layout& layout, std::size_t total_bytes) {
  const int blocks = layout.blocks();
  const std::size_t segment_bytes = layout.segment_bytes();
  ASSERT_GE(layout.segments(), 1);
  std::vector<int> covered(total_bytes, 0);
  std::size_t in_last_segment_bytes = 0;
  for (int block = 0; block < blocks; ++block) {
    std::size_t end_bytes = 0;
    for (std::int64_t segment = 0; segment < layout.segments(); ++segment) {
      std::size_t packed_bytes = 0;
      layout.for_each_piece(block, segment, [&](const Piece& piece, std::size_t packed_offset_bytes) {
        ASSERT_EQ(packed_offset_bytes, packed_bytes);
        ASSERT_GT(piece.length_bytes, 0U);
        ASSERT_GE(piece.offset_bytes, end_bytes) << "pieces of a block go upwards";
        end_bytes = piece.offset_bytes + piece.length_bytes;
        ASSERT_LE(end_bytes, total_bytes);
        for (std::size_t byte = piece.offset_bytes; byte < end_bytes; ++byte) ++covered[byte];
        ASSERT_EQ(layout.block_of(piece.offset_bytes), block);
        ASSERT_EQ(layout.block_of(end_bytes - 1), block);
        packed_bytes += piece.length_bytes;
      });
      ASSERT_EQ(layout.segment_length_bytes(block, segment), packed_bytes);
      ASSERT_LE(packed_bytes, segment_bytes);
      if (segment + 1 == layout.segments()) in_last_segment_bytes += packed_bytes;
    }
    ASSERT_EQ(layout.segment_length_bytes(block, layout.segments()), 0U);
  }
  for (std::size_t byte = 0; byte < total_bytes; ++byte) ASSERT_EQ(covered[byte], 1) << "byte " << byte;
  ASSERT_EQ(in_last_segment_bytes == 0, total_bytes == 0) << "there are no segments that carry nothing";
}

void expect_covers_once(Dealing dealing, std::size_t total_bytes, int blocks, std::size_t segment_bytes,
                        std::size_t stride_bytes = 0) {
  SCOPED_TRACE(std::string(dealing == Dealing::block ? "block " : "block-cyclic ") + std::to_string(total_bytes) +
               " bytes, " + std::to_string(blocks) + " blocks, segment " + std::to_string(segment_bytes) + ", stride " +
               std::to_string(stride_bytes));
  expect_covers_once(Layout(dealing, total_bytes, blocks, segment_bytes, stride_bytes), total_bytes);
}

TEST(Layout, PartsOfBlocksAreCoveredOnce) {
  for (const int ranks : {1, 3, 4}) {
    for (const int count : {1, 2, 6}) {
      for (const std::size_t block_bytes : {0UL, 4UL, 64UL, 128UL, 132UL, 1000UL, 12288UL}) {
        for (const std::size_t segment_bytes : {64UL, 4096UL}) {
          const std::size_t length_bytes = (block_bytes / static_cast<std::size_t>(count) + 128) / 128 * 128;
          SCOPED_TRACE(std::to_string(ranks) + " blocks of " + std::to_string(block_bytes) + " bytes in " +
                       std::to_string(count) + " parts of " + std::to_string(length_bytes));
          const std::size_t total_bytes = block_bytes * static_cast<std::size_t>(ranks);
          const Layout layout(total_bytes, ranks * count, segment_bytes, block_bytes, {count, length_bytes});
          expect_covers_once(layout, total_bytes);
          for (std::size_t byte = 0; byte < total_bytes; ++byte) {
            ASSERT_EQ(static_cast<std::size_t>(layout.block_of(byte) / count), byte / block_bytes);
          }
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Layout, BadPartsAreNamed) {
  const auto refuses = [](const char* reason, int blocks, Layout::Parts parts) {
    try {
      const Layout layout(1200, blocks, 64, 400, parts);
      ADD_FAILURE() << "accepted where it should say: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  refuses("2 parts of 256 bytes do not divide 7 blocks", 7, {2, 256});
  refuses("2 parts of 128 bytes do not divide 6 blocks, or a stride of 400 bytes", 6, {2, 128});
  refuses("a vector of 0 blocks", 6, {0, 128});
}

TEST(Layout, RandomLengthsAreCoveredOnce) {
  for (const Seed& seed : seeds_of("shapes_test/layout", 300)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed.value);
    const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
    const std::size_t most_bytes = std::size_t{1} << (6 + below(16));
    const auto blocks = static_cast<int>(1 + below(9));
    const std::size_t segment_bytes = 64 * (1 + below(std::size_t{1} << below(11)));
    const std::size_t total_bytes = below(most_bytes);
    expect_covers_once(Dealing::block, total_bytes, blocks, segment_bytes);
    expect_covers_once(Dealing::block_cyclic, total_bytes, blocks, segment_bytes);
    const std::size_t least_bytes = total_bytes / static_cast<std::size_t>(blocks) + 1;
    expect_covers_once(Dealing::block, total_bytes, blocks, segment_bytes, least_bytes + below(1000));
    if (HasFatalFailure()) return;
  }
}

TEST(Layout, EdgesAreCoveredOnce) {
  for (const std::size_t total_bytes :
       {std::size_t{0}, std::size_t{1}, 4 * kKiB - 1, 4 * kKiB, 4 * kKiB + 1, 64 * kKiB - 1, 64 * kKiB, 64 * kKiB + 1,
        80 * kKiB + 8, 1024 * kKiB - 8, 1024 * kKiB, 1024 * kKiB + 8, 1024 * kKiB + 3 * 64 * kKiB + 4}) {
    for (const int blocks : {1, 2, 3, 7}) {
      for (const std::size_t segment_bytes : {std::size_t{64}, 4 * kKiB, 24 * kKiB, 2048 * kKiB}) {
        if (total_bytes / segment_bytes > 4096) continue;
        expect_covers_once(Dealing::block, total_bytes, blocks, segment_bytes);
        expect_covers_once(Dealing::block_cyclic, total_bytes, blocks, segment_bytes);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Layout, CyclicBlockOfAByteIgnoresTheLength) {
  const Layout small(Dealing::block_cyclic, 100 * kKiB, 3, 32 * kKiB);
  const Layout large(Dealing::block_cyclic, 10000 * kKiB, 3, 4 * kKiB);
  for (std::size_t byte = 0; byte < 100 * kKiB; byte += 8) ASSERT_EQ(small.block_of(byte), large.block_of(byte));
}

TEST(Layout, EvenStridesAreWholeLines) {
  const Layout layout(Dealing::block, 1000, 3, 64);
  EXPECT_EQ(layout.even_piece(1, 0).offset_bytes, 384U);
  EXPECT_EQ(layout.even_piece(2, 0).offset_bytes, 768U);
  const Layout given(Dealing::block, 1000, 3, 64, 400);
  EXPECT_EQ(given.even_piece(2, 0).offset_bytes, 800U);
}

TEST(Layout, AnEmptyVectorHasOneEmptySegment) {
  for (const Dealing dealing : {Dealing::block, Dealing::block_cyclic}) {
    const Layout layout(dealing, 0, 3, 64);
    EXPECT_EQ(layout.segments(), 1);
    EXPECT_EQ(layout.segment_length_bytes(2, 0), 0U);
  }
}

/// Blocks of lengths of their own, some of them empty: each byte is in one piece of its block.
TEST(Layout, UnequalBlocksAreCoveredOnce) {
  const std::vector<std::size_t> offsets = {0, 0, 1000, 1000, 1001, 5000};
  const Layout layout(offsets, 256);
  EXPECT_EQ(layout.blocks(), 5);
  EXPECT_EQ(layout.total_bytes(), 5000U);
  EXPECT_EQ(layout.segments(), 16) << "of the longest block, 3999 bytes";
  std::vector<int> seen(5000, 0);
  for (int block = 0; block < layout.blocks(); ++block) {
    for (std::int64_t segment = 0; segment < layout.segments(); ++segment) {
      const Piece piece = layout.even_piece(block, segment);
      ASSERT_EQ(piece.length_bytes, layout.segment_length_bytes(block, segment));
      for (std::size_t i = 0; i < piece.length_bytes; ++i) {
        ++seen[piece.offset_bytes + i];
        ASSERT_EQ(layout.block_of(piece.offset_bytes + i), block);
      }
    }
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 5000);
  EXPECT_EQ(Layout(std::vector<std::size_t>{0, 0}, 64).segments(), 1);
  EXPECT_THROW(Layout(std::vector<std::size_t>{0, 8, 4}, 64), Error);
  EXPECT_THROW(Layout(std::vector<std::size_t>{4, 8}, 64), Error);
  EXPECT_THROW(Layout(std::vector<std::size_t>{}, 64), Error);
}

TEST(Layout, SpansHoldTheirBlocksAndNoMore) {
  const std::vector<Layout> layouts = {
      Layout(Dealing::block, 1000, 3, 64),
      Layout(Dealing::block, 5000, 7, 128, 1000),
      Layout(Dealing::block, 100, 8, 64),
      Layout(Dealing::block, 777, 1, 64),
      Layout(9 * kKiB, 12, 256, 3 * kKiB, {4, 768}),
      Layout(9001, 12, 256, 3 * kKiB, {4, 896}),
      Layout(std::vector<std::size_t>{0, 10, 10, 500, 900}, 64),
      Layout(Dealing::block_cyclic, 100 * kKiB, 3, 1024),
  };
  for (const Layout& layout : layouts) {
    for (int first = 0; first < layout.blocks(); ++first) {
      std::size_t begin_bytes = SIZE_MAX;
      std::size_t end_bytes = 0;
      for (int last = first; last < layout.blocks(); ++last) {
        for (std::int64_t segment = 0; segment < layout.segments(); ++segment) {
          layout.for_each_piece(last, segment, [&](const Piece& piece, std::size_t) {
            begin_bytes = std::min(begin_bytes, piece.offset_bytes);
            end_bytes = std::max(end_bytes, piece.offset_bytes + piece.length_bytes);
          });
        }
        const Piece span = layout.span(first, last);
        SCOPED_TRACE("of " + std::to_string(layout.total_bytes()) + " bytes, blocks " + std::to_string(first) + " to " +
                     std::to_string(last));
        if (end_bytes == 0) {
          EXPECT_EQ(span.length_bytes, 0U);
        } else if (&layout != &layouts.back()) {
          EXPECT_EQ(span.offset_bytes, begin_bytes);
          EXPECT_EQ(span.offset_bytes + span.length_bytes, end_bytes);
        } else {
          EXPECT_EQ(span.offset_bytes, 0U);
          EXPECT_EQ(span.length_bytes, layout.total_bytes());
        }
      }
    }
  }
}

TEST(Layout, BadArgumentsAreNamed) {
  const auto refuses = [](const char* reason, int blocks, std::size_t segment_bytes, std::size_t stride_bytes) {
    try {
      const Layout layout(Dealing::block, 1000, blocks, segment_bytes, stride_bytes);
      ADD_FAILURE() << "accepted where it should say: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  refuses("a vector of 0 blocks", 0, 64, 0);
  refuses("a segment of 0 bytes", 1, 0, 0);
  refuses("a segment of 100 bytes", 1, 100, 0);
  refuses("3 blocks of 333 bytes do not hold a vector of 1000", 3, 64, 333);
}

}  // namespace
}  // namespace torii::tests
