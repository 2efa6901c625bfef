// SPDX-License-Identifier: Apache-2.0
// The perf binaries' own arithmetic: data that depends on (seed, rank, index, type) only, comparison and hash with
// NaNs and padding, sizes, statistics; and how the host is named.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "perf/common/buffers.hpp"
#include "perf/common/data.hpp"
#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/measure.hpp"
#include "perf/common/names.hpp"
#include "reduce_kernels/average.hpp"
#include "reduce_kernels/kernels.hpp"
#include "runtime/base/numbers.hpp"
#include "tests/support/folder_test.hpp"

namespace torii::perf {
namespace {

constexpr size_t kCount = 20000;

template <typename Element>
std::vector<Element> filled(torii_type type, uint64_t seed = 1, int rank = 0) {
  std::vector<Element> values(kCount);
  fill(seed, type, rank, 0, kCount, values.data());
  return values;
}

TEST(PerfData, APartIsThePartOfTheWhole) {
  for (const TypeInfo& type : all_types()) {
    std::vector<std::byte> whole(kCount * type.size_bytes), part(100 * type.size_bytes);
    fill(7, type.type, 3, 0, kCount, whole.data());
    fill(7, type.type, 3, 1234, 100, part.data());
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + 1234 * type.size_bytes, part.size()), 0) << type.name;
  }
}

TEST(PerfData, DependsOnSeedAndRank) {
  for (const TypeInfo& type : all_types()) {
    std::vector<std::byte> a(kCount * type.size_bytes), b(a), c(a);
    fill(1, type.type, 0, 0, kCount, a.data());
    fill(2, type.type, 0, 0, kCount, b.data());
    fill(1, type.type, 1, 0, kCount, c.data());
    // Half of all truth values are equal by chance.
    EXPECT_GT(count_wrong(type.type, a.data(), b.data(), kCount), kCount * 2 / 5) << type.name;
    EXPECT_GT(count_wrong(type.type, a.data(), c.data(), kCount), kCount * 2 / 5) << type.name;
    EXPECT_NE(hash(type.type, a.data(), kCount), hash(type.type, c.data(), kCount)) << type.name;
  }
}

TEST(PerfData, RealsHaveBothSignsAndExponentsOver20) {
  int exponent_min = 100, exponent_max = -100, negative = 0;
  std::set<uint32_t> low_bits;
  for (const float value : filled<float>(TORII_F32)) {
    const int exponent = std::ilogb(value);
    exponent_min = std::min(exponent_min, exponent);
    exponent_max = std::max(exponent_max, exponent);
    negative += value < 0 ? 1 : 0;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    low_bits.insert(bits & 0xff);
  }
  EXPECT_EQ(exponent_min, -20);
  EXPECT_EQ(exponent_max, 20);
  EXPECT_NEAR(negative, kCount / 2.0, kCount / 20.0);
  EXPECT_EQ(low_bits.size(), 256u);
}

TEST(PerfData, HalfsStayWithinFourBinaryOrders) {
  for (const uint16_t bits : filled<uint16_t>(TORII_F16)) {
    const int exponent = ((bits >> 10) & 31) - 15;
    ASSERT_GE(exponent, -4);
    ASSERT_LE(exponent, 4);
  }
}

TEST(PerfData, IntegersHaveZerosNowAndThen) {
  const std::vector<int32_t> values = filled<int32_t>(TORII_I32);
  EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), 0)), kCount / 16.0, kCount / 80.0);
}

TEST(PerfData, PairsRepeatValues) {
  struct Pair {
    int64_t value;
    int32_t index;
    int32_t padding;
  };
  const std::vector<Pair> values = filled<Pair>(TORII_I64_I32);
  const auto small = std::count_if(values.begin(), values.end(), [](const Pair& p) { return (p.value & ~3) == 0; });
  EXPECT_GT(small, static_cast<long>(kCount) / 8);
}

TEST(PerfData, OneWrongBitIsOneWrongElement) {
  for (const TypeInfo& type : all_types()) {
    std::vector<std::byte> a(100 * type.size_bytes);
    fill(1, type.type, 0, 0, 100, a.data());
    std::vector<std::byte> b = a;
    b[37 * type.size_bytes] ^= std::byte{1};
    EXPECT_EQ(count_wrong(type.type, a.data(), a.data(), 100), 0u) << type.name;
    EXPECT_EQ(count_wrong(type.type, a.data(), b.data(), 100), 1u) << type.name;
    EXPECT_NE(hash(type.type, a.data(), 100), hash(type.type, b.data(), 100)) << type.name;
  }
}

TEST(PerfData, AnyNanEqualsAnyNanButNoNumber) {
  float a[2] = {std::numeric_limits<float>::quiet_NaN(), 1};
  float b[2] = {-std::nanf("123"), 1};
  float c[2] = {std::numeric_limits<float>::infinity(), 1};
  EXPECT_EQ(count_wrong(TORII_F32, a, b, 2), 0u);
  EXPECT_EQ(hash(TORII_F32, a, 2), hash(TORII_F32, b, 2));
  EXPECT_EQ(count_wrong(TORII_F32, a, c, 2), 1u);
  EXPECT_NE(hash(TORII_F32, a, 2), hash(TORII_F32, c, 2));
  const float zeros[2] = {0.0f, -0.0f};
  EXPECT_EQ(count_wrong(TORII_F32, zeros, zeros + 1, 1), 1u) << "signs of zero are bits";
}

TEST(PerfData, PaddingIsNoData) {
  uint8_t a[8] = {1, 2, 0, 0, 5, 6, 7, 8}, b[8] = {1, 2, 9, 9, 5, 6, 7, 8};
  EXPECT_EQ(count_wrong(TORII_I16_I32, a, b, 1), 0u);
  EXPECT_EQ(hash(TORII_I16_I32, a, 1), hash(TORII_I16_I32, b, 1));
}

TEST(PerfData, CheckedRangesCoverShortVectorsAndTheEndsOfLongOnes) {
  const std::vector<Range> whole = checked_ranges(1 << 18, 4);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].count, size_t{1} << 18);
  const size_t count = (size_t{1} << 23) + 5;
  const std::vector<Range> samples = checked_ranges(count, 4);
  EXPECT_GT(samples.size(), 100u);
  EXPECT_EQ(samples.front().first, 0u);
  EXPECT_EQ(samples.back().first + samples.back().count, count);
  for (const Range& range : samples) EXPECT_LE(range.first + range.count, count);
}

TEST(PerfSizes, UnitsAre1024) {
  EXPECT_EQ(parse_size("-b", "8"), 8u);
  EXPECT_EQ(parse_size("-b", "64K"), 65536u);
  EXPECT_EQ(parse_size("-b", "32M"), size_t{32} << 20);
  EXPECT_EQ(parse_size("-b", "1G"), size_t{1} << 30);
  EXPECT_EQ(bytes_text(65536), "64K");
  EXPECT_EQ(bytes_text(1000), "1000");
  for (const char* bad :
       {"", "K", "8k", "-8", "8KB", "8 K", "0x10", "0", "0K", "99999999999999999999", "18446744073709551615K"}) {
    EXPECT_THROW(parse_size("-b", bad), Failure) << bad;
  }
}

TEST(PerfNames, OperationsAreDefinedWhereTheyMakeSense) {
  EXPECT_TRUE(is_defined(TORII_SUM, TORII_CF32));
  EXPECT_FALSE(is_defined(TORII_MIN, TORII_CF32));
  EXPECT_FALSE(is_defined(TORII_BAND, TORII_F32));
  EXPECT_TRUE(is_defined(TORII_LXOR, TORII_U8));
  EXPECT_TRUE(is_defined(TORII_MINLOC, TORII_F32_I32));
  EXPECT_FALSE(is_defined(TORII_SUM, TORII_F32_I32));
  EXPECT_FALSE(is_defined(TORII_MAXLOC, TORII_F32));
  EXPECT_FALSE(is_defined(TORII_MAXLOC, TORII_BOOL));
  EXPECT_FALSE(is_defined(TORII_LAND, TORII_FLOAT8_E5M2));
  EXPECT_TRUE(is_defined(TORII_REDUCE, TORII_AVG, TORII_F32));
  EXPECT_FALSE(is_defined(TORII_EXSCAN, TORII_AVG, TORII_F32));
  for (const OpInfo& op : all_ops()) {
    for (const TypeInfo& type : all_types()) {
      const auto of = static_cast<Type>(type.type);
      const char* const reason =
          op.op == TORII_AVG ? kernels::why_no_average(of) : kernels::why_not(static_cast<Op>(op.op), of);
      EXPECT_EQ(is_defined(op.op, type.type), reason == nullptr) << op.name << " " << type.name;
      EXPECT_STREQ(name(op.op), op.name);
    }
  }
  for (const TypeInfo& type : all_types()) {
    EXPECT_EQ(torii_type_bytes(type.type), type.size_bytes) << type.name;
    EXPECT_EQ(parse_type(type.name), type.type);
  }
}

TEST(PerfStatistics, MediansOverBlocks) {
  const std::vector<std::vector<double>> blocks = {{1000, 2000, 9000}, {3000, 3000, 3000}, {1000, 1000, 50000}};
  const Statistics time = summarise(blocks);
  EXPECT_DOUBLE_EQ(time.median_us, 2);
  EXPECT_DOUBLE_EQ(time.mad_us, 1);
  EXPECT_DOUBLE_EQ(time.p50_us, 3);
  EXPECT_DOUBLE_EQ(time.p99_us, 50);
  EXPECT_DOUBLE_EQ(time.max_us, 50);
  EXPECT_EQ(time.calls, 9);
  EXPECT_DOUBLE_EQ(busbw_factor(TORII_ALLREDUCE, 4), 1.5);
  EXPECT_DOUBLE_EQ(busbw_factor(TORII_ALL_GATHER, 4), 0.75);
  EXPECT_DOUBLE_EQ(busbw_factor(TORII_BROADCAST, 4), 1);
}

/// A made-up root folder.
class PerfHost : public tests::FolderTest {
 protected:
  void add(const std::string& folder) const { std::filesystem::create_directories(folder_ / folder); }
  void set_model(const std::string& model) const {
    add("proc");
    write("proc/cpuinfo", "processor\t: 0\nmodel name\t: " + model + "\nflags\t\t: fpu\n");
  }
  /// Without the number of CPUs, which is that of this machine.
  std::string told() const {
    std::string text = host(folder_);
    const std::string cpus = ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs";
    const size_t at = text.find(cpus);
    return at == std::string::npos ? "no number in: " + text : text.erase(at, cpus.size());
  }
};

TEST_F(PerfHost, SaysWhatIsEmulated) {
  EXPECT_EQ(told(), "unknown CPU");
  set_model("AMD EPYC");
  EXPECT_EQ(told(), "AMD EPYC");
  add("sys/class/infiniband/mlx5_0/device");
  EXPECT_EQ(told(), "AMD EPYC");
  add("sys/class/infiniband/rxe1");
  add("sys/class/infiniband/rxe0/ports");
  EXPECT_EQ(told(), "AMD EPYC, emulation of rxe0, of rxe1");
  set_model("QEMU TCG CPU version 2.5+");
  EXPECT_EQ(told(), "QEMU TCG CPU version 2.5+, emulation of its CPUs, of rxe0, of rxe1");
  std::filesystem::remove_all(folder_ / "sys");
  EXPECT_EQ(told(), "QEMU TCG CPU version 2.5+, emulation of its CPUs");
}

}  // namespace
}  // namespace torii::perf
