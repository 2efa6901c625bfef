// SPDX-License-Identifier: Apache-2.0
// The table of adopted addresses while another thread changes it: for the thread sanitizer, and for what readers find.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "transports/shared_memory/address_table.hpp"

namespace torii::shared_memory {
namespace {

constexpr std::uintptr_t kFirst = 1 << 20;
constexpr std::uintptr_t kLength = 4096;

/// Entry i is at kFirst + 2 * i * kLength and maps to an offset that says so.
std::vector<AddressTable::Entry> entries(std::size_t count) {
  std::vector<AddressTable::Entry> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t first = kFirst + 2 * i * kLength;
    all.push_back({{first, first + kLength}, static_cast<std::int64_t>(i) * 1'000'000});
  }
  return all;
}

std::optional<std::int64_t> find(const AddressTable& table, std::size_t entry, std::size_t into, std::size_t bytes) {
  return table.find(reinterpret_cast<const void*>(kFirst + 2 * entry * kLength + into), bytes);
}

TEST(AddressTable, FindsWhatOneEntryContains) {
  AddressTable table;
  EXPECT_FALSE(find(table, 0, 0, 1)) << "an empty table without room";
  table.reserve(3);
  table.set(entries(3));
  EXPECT_EQ(find(table, 2, 10, 20), 2'000'010);
  EXPECT_EQ(find(table, 1, 0, kLength), 1'000'000);
  EXPECT_FALSE(find(table, 1, 1, kLength)) << "its end lies outside";
  EXPECT_FALSE(find(table, 1, kLength + 1, 1)) << "between two entries";
  EXPECT_FALSE(table.find(reinterpret_cast<const void*>(kFirst - 1), 1));
  table.set({});
  EXPECT_FALSE(find(table, 0, 0, 1));
}

/// The table grows into new blocks, and shrinks, under readers. The first entry is always there, so that a reader that
/// meets a block half made shows. What the threads tell each other besides orders nothing.
TEST(AddressTable, ReadersNeedNoLockWhileItGrows) {
  for (int round = 0; round < 5; ++round) {
    AddressTable table;
    std::atomic<bool> stop = false;
    std::array<std::atomic<int>, 2> looks = {};
    std::vector<std::thread> readers;
    for (std::atomic<int>& own_looks : looks) {
      readers.emplace_back([&] {
        bool was_there = false;
        while (!stop.load(std::memory_order_relaxed)) {
          const std::optional<std::int64_t> first = find(table, 0, 7, 8);
          EXPECT_TRUE(first || !was_there);
          was_there = was_there || first;
          EXPECT_EQ(first.value_or(7), 7);
          EXPECT_EQ(find(table, 40, 0, 1).value_or(40'000'000), 40'000'000);
          own_looks.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
    const auto wait_for_looks = [&] {
      for (std::atomic<int>& of_reader : looks) {
        const int before = of_reader.load(std::memory_order_relaxed);
        while (of_reader.load(std::memory_order_relaxed) < before + 2) std::this_thread::yield();
      }
    };
    wait_for_looks();
    for (const std::size_t count : {1U, 9U, 50U, 3U, 200U, 41U}) {
      const std::vector<AddressTable::Entry> all = entries(count);
      table.reserve(count);
      table.set(all);
      wait_for_looks();
    }
    stop.store(true, std::memory_order_relaxed);
    for (std::thread& reader : readers) reader.join();
  }
}

}  // namespace
}  // namespace torii::shared_memory
