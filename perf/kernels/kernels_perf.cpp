// SPDX-License-Identifier: Apache-2.0
// Google Benchmark of every reduction kernel. Each row alternates, in one loop, the kernel with the plain c = a + b
// loops of memory_limit.hpp and with the f32 sum, so that a change of the machine's speed cannot be taken for a
// kernel's. Columns: got_us and limit_us are medians, got_limit the median ratio to the fastest of those loops (1.05 =
// five per cent above the limit), of_f32 the elements per second relative to the f32 sum.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "perf/kernels/memory_limit.hpp"
#include "reduce_kernels/kernels.hpp"

namespace torii::perf {
namespace {

using kernels::FoldFn;
using kernels::Isa;
using kernels::Operands;

constexpr size_t kBytesMax = size_t{64} << 20;
constexpr int kSourcesHere = 3;
// From here on a result does not fit beside its sources in any private cache: the library would stream it.
constexpr size_t kNonTemporalBytesMin = size_t{4} << 20;

/// Three sources and a target, filled with numbers that are harmless in every type.
class Vectors {
 public:
  Vectors() {
    for (void*& each : all_) {
      each = mmap(nullptr, kBytesMax, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (each == MAP_FAILED) std::abort();
      madvise(each, kBytesMax, MADV_HUGEPAGE);
      // One small value in every 16-bit, 32-bit and 64-bit view: no NaN and no subnormal, which some units slow down
      // on.
      std::fill_n(static_cast<uint32_t*>(each), kBytesMax / sizeof(uint32_t), 0x3c003c00u);
    }
  }
  const void* const* sources() const { return all_; }
  void* const* target() const { return all_ + kSourcesHere; }

 private:
  void* all_[kSourcesHere + 1] = {};
};

const Vectors& vectors() {
  static const Vectors instance;
  return instance;
}

struct Case {
  Op op;
  Type type;
  Isa isa;
  int source_count;
  size_t bytes;
};

double seconds_of(const auto& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void run_kernel(FoldFn fold, Type type, int source_count, size_t bytes) {
  Operands operands;
  operands.sources = vectors().sources();
  operands.source_count = source_count;
  operands.targets = vectors().target();
  operands.target_count = 1;
  operands.non_temporal_targets = bytes >= kNonTemporalBytesMin ? 1 : 0;
  fold(operands, bytes / size_of(type));
  if (operands.non_temporal_targets != 0) kernels::store_fence();
}

/// Times one case; `inner` calls per sample keep the clock's own cost out of small ones.
void measure(benchmark::State& state, const Case& test) {
  const FoldFn fold = kernels::find(test.op, test.type, test.isa);
  const FoldFn f32_sum = kernels::find(Op::sum, Type::f32, test.isa);
  const size_t inner = std::max<size_t>(1, (size_t{2} << 20) / test.bytes);
  const auto* sources = reinterpret_cast<const float* const*>(vectors().sources());
  auto* target = static_cast<float*>(vectors().target()[0]);
  const std::vector<LimitLoop> loops = limit_loops();
  std::vector<double> got_seconds;
  std::vector<double> of_f32;
  std::vector<std::vector<double>> limit_seconds(loops.size());
  std::vector<std::vector<double>> got_per_limit(loops.size());
  const auto sample = [inner](const auto& once) {
    once();  // whatever ran before left the caches in its own state
    return seconds_of([&] {
             for (size_t i = 0; i < inner; ++i) once();
           }) /
           static_cast<double>(inner);
  };
  const double elements_per_f32 = static_cast<double>(sizeof(float)) / static_cast<double>(size_of(test.type));
  for (auto _ : state) {
    for (size_t i = 0; i < loops.size(); ++i) {
      limit_seconds[i].push_back(
          sample([&] { loops[i].run(sources, test.source_count, target, test.bytes / sizeof(float)); }));
    }
    const double f32 = sample([&] { run_kernel(f32_sum, Type::f32, test.source_count, test.bytes); });
    const double got = sample([&] { run_kernel(fold, test.type, test.source_count, test.bytes); });
    got_seconds.push_back(got);
    of_f32.push_back(elements_per_f32 * f32 / got);
    for (size_t i = 0; i < loops.size(); ++i) got_per_limit[i].push_back(got / limit_seconds[i].back());
    state.SetIterationTime(got);
  }
  // Ratios are taken within each round and only then the median: the machine's speed may double from round to round.
  std::vector<double> ratios;
  for (auto& per_round : got_per_limit) ratios.push_back(median(per_round));
  const auto best = static_cast<size_t>(std::max_element(ratios.begin(), ratios.end()) - ratios.begin());
  const double got = median(got_seconds);
  state.SetLabel(std::string("limit: ") + loops[best].name);
  state.counters["got_us"] = got * 1e6;
  state.counters["limit_us"] = median(limit_seconds[best]) * 1e6;
  state.counters["got_limit"] = ratios[best];
  state.counters["of_f32"] = median(of_f32);
  state.counters["GBps"] = static_cast<double>(test.bytes) * (test.source_count + 1) / got * 1e-9;
}

void register_case(const Case& test) {
  const std::string size =
      test.bytes >= (size_t{1} << 20) ? std::to_string(test.bytes >> 20) + "M" : std::to_string(test.bytes >> 10) + "K";
  const std::string name = std::string(torii::name(test.op)) + "/" + torii::name(test.type) + "/" +
                           kernels::name(test.isa) + "/" + std::to_string(test.source_count) + "/" + size;
  benchmark::RegisterBenchmark(name.c_str(), [test](benchmark::State& state) { measure(state, test); })
      ->UseManualTime()
      ->Iterations(test.bytes >= kNonTemporalBytesMin ? 15 : 101)
      ->Unit(benchmark::kMicrosecond);
}

void register_all() {
  for (const size_t bytes : {size_t{256} << 10, kBytesMax}) {
    for (const int source_count : {2, 3}) {
      std::vector<Isa> isas = kernels::available_isas();
      isas.push_back(Isa::automatic);
      for (const Isa isa : isas) {
        for (int op = 0; op < kOpCount; ++op) {
          for (int type = 0; type < kTypeCount; ++type) {
            const Case test{static_cast<Op>(op), static_cast<Type>(type), isa, source_count, bytes};
            if (kernels::find(test.op, test.type, isa) != nullptr) register_case(test);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  torii::perf::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
