// SPDX-License-Identifier: Apache-2.0
// The parser of /proc/self/maps and smaps, on what kernels write and on rubbish, and what may be adopted.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/support/test_run.hpp"
#include "transports/shared_memory/mappings.hpp"

namespace torii::shared_memory {
namespace {

TEST(Mappings, ReadsWhatKernelsWrite) {
  const auto mappings = parse_mappings(
      "55d0-55d1 r-xp 00002000 fe:01 1234                               /usr/bin/a b\n"
      "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
      "7f0000021000-7f0000022000 rw-s 0000f000 00:01 2049               /memfd:torii-arena (deleted)\n"
      "7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0                  [stack]");
  ASSERT_EQ(mappings.size(), 4u);
  EXPECT_EQ(mappings[0].range.first, 0x55d0u);
  EXPECT_EQ(mappings[0].range.end, 0x55d1u);
  EXPECT_TRUE(mappings[0].readable && !mappings[0].writable && mappings[0].executable && !mappings[0].is_shared);
  EXPECT_EQ(mappings[0].offset, 0x2000u);
  EXPECT_EQ(mappings[0].device_major, 0xfeu);
  EXPECT_EQ(mappings[0].device_minor, 1u);
  EXPECT_EQ(mappings[0].inode, 1234u);
  EXPECT_EQ(mappings[0].name, "/usr/bin/a b");
  EXPECT_TRUE(mappings[1].writable && mappings[1].name.empty() && mappings[1].inode == 0);
  EXPECT_TRUE(mappings[2].is_shared);
  EXPECT_EQ(mappings[3].name, "[stack]");
}

TEST(Mappings, SmapsTellWhatIsLocked) {
  const auto mappings = parse_mappings(
      "1000-3000 rw-p 00000000 00:00 0 \nSize:                  8 kB\nVmFlags: rd wr mr mw me ac sd \n"
      "3000-5000 rw-p 00000000 00:00 0 \nLocked:                8 kB\nVmFlags: rd wr mr mw me lo ac sd \n");
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_FALSE(mappings[0].locked);
  EXPECT_TRUE(mappings[1].locked);
  EXPECT_EQ(why_not_adoptable(mappings, {0x1000, 0x3000}), "");
  EXPECT_NE(why_not_adoptable(mappings, {0x1000, 0x4000}).find("0x3000 is locked"), std::string::npos);
}

TEST(Mappings, SayWhyNot) {
  const auto why = [](const std::string& text) { return why_not_adoptable(parse_mappings(text), {0x2000, 0x4000}); };
  EXPECT_EQ(why("1000-3000 rw-p 0 00:00 0 [heap]\n3000-5000 rw-p 0 00:00 0 [anon:pool]\n"), "");
  EXPECT_EQ(why("1000-4000 rw-p 0 00:00 0 \n"), "");
  EXPECT_EQ(why(""), "memory at 0x2000 is not mapped");
  EXPECT_EQ(why("1000-3000 rw-p 0 00:00 0 \n"), "memory at 0x3000 is not mapped");
  EXPECT_EQ(why("1000-3000 rw-p 0 00:00 0 \n3800-5000 rw-p 0 00:00 0 \n"), "memory at 0x3000 is not mapped");
  EXPECT_EQ(why("1000-4000 r--p 0 00:00 0 \n"), "memory at 0x2000 is not both readable and writable");
  EXPECT_EQ(why("1000-4000 ---p 0 00:00 0 \n"), "memory at 0x2000 is not both readable and writable");
  EXPECT_EQ(why("1000-4000 rwxp 0 00:00 0 \n"), "memory at 0x2000 is executable");
  EXPECT_EQ(why("1000-4000 rw-s 0 00:01 9 /dev/zero (deleted)\n"),
            "memory at 0x2000 is a shared mapping, /dev/zero (deleted)");
  EXPECT_EQ(why("1000-4000 rw-p 0 fe:01 9 /usr/data\n"), "memory at 0x2000 is a private mapping of a file, /usr/data");
  EXPECT_EQ(why("1000-4000 rw-p 0 00:10 9 /anon_hugepage (deleted)\n"),
            "memory at 0x2000 is huge pages, /anon_hugepage (deleted)");
  EXPECT_EQ(why("1000-4000 rw-p 0 00:00 0 [stack]\n"), "memory at 0x2000 is the stack, [stack]");
}

TEST(Mappings, KnowThisProcess) {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto at = reinterpret_cast<std::uintptr_t>(page);
  EXPECT_EQ(why_not_adoptable(read_mappings(), {at, at + 4096}), "");
  // By number: sanitizers make mlock do nothing.
  ASSERT_EQ(syscall(SYS_mlock, page, 4096), 0);
  EXPECT_NE(why_not_adoptable(read_mappings(), {at, at + 4096}).find("locked"), std::string::npos);
  munmap(page, 4096);
  EXPECT_NE(why_not_adoptable(read_mappings(), {at, at + 4096}), "");
}

/// Lines cut, joined and with single characters changed: never a crash, never a range that is none.
TEST(Mappings, RubbishIsPassedOver) {
  const std::string good =
      "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \nVmFlags: rd lo\n"
      "7f0000021000-7f0000022000 rw-s 0000f000 00:01 2049 /memfd:x (deleted)\n";
  for (const tests::Seed& seed : tests::seeds_of("test_mappings", 20'000)) {
    std::mt19937_64 random(seed.value);
    std::string text = good;
    for (std::size_t change = random() % 6; change > 0; --change) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    text.resize(random() % (text.size() + 1));
    for (const MappedRange& mapping : parse_mappings(text)) {
      ASSERT_LT(mapping.range.first, mapping.range.end) << seed << "\n" << text;
    }
  }
  EXPECT_TRUE(
      parse_mappings("VmFlags: lo\n\n-\n1-2\n1-2 rw-p\n2-1 rw-p 0 00:00 0\nffffffffffffffffff-2 rw-p 0 0:0 0").empty());
}

}  // namespace
}  // namespace torii::shared_memory
