// SPDX-License-Identifier: Apache-2.0
// Engines with rates of their own: a put goes by the engine that it names, and streams with enough slots balance their
// messages over engines on virtual time, by the same code as over a network.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "reduce_kernels/kernels.hpp"
#include "tests/transports/simulated/calls.hpp"
#include "tools/operands.hpp"

namespace torii::simulated {
namespace {

constexpr std::size_t kPutBytes = std::size_t{4} << 20;

/// A broadcast from rank 0 to rank 1, whose one stream has four engines. The link is fast: engines are the limit.
Call broadcast(int slots, const std::vector<double>& rates) {
  PlanRequest request = request_on("node", 2, 16384, Collective::broadcast);
  request.tuning.slots = request.tuning.window = slots;
  Call call = make_call("chain", request, kPutBytes);
  call.network.bandwidth_GBps = 50;
  call.network.alpha_us = 0.1;
  call.network.overhead_us = 0;
  call.network.engine_rates = rates;
  call.watched = 0;
  return call;
}

std::array<std::size_t, 4> bytes_by_engine(const Outcome& outcome) {
  std::array<std::size_t, 4> bytes{};
  for (const EngineUse& use : outcome.uses) bytes.at(static_cast<std::size_t>(use.engine)) += use.bytes;
  return bytes;
}

TEST(Engines, CarryWhatNamesThem) {
  Call call = broadcast(8, {0.01, 0.01, 0.01, 0.01});  // too few slots to balance: engines take turns
  const Outcome outcome = run(call);
  for (const std::size_t bytes : bytes_by_engine(outcome)) EXPECT_EQ(bytes, kPutBytes / 4);
  // Each of four engines at a hundredth of 50 GB/s moves a quarter of the bytes.
  EXPECT_NEAR(microseconds(outcome), static_cast<double>(kPutBytes) / 4 / 500,
              static_cast<double>(kPutBytes) / 4 / 500 * 0.1);
}

TEST(Engines, AreBalancedOnVirtualTime) {
  const std::vector<double> rates = {0.01, 0.01, 0.01, 0.001};
  const Outcome turns = run(broadcast(8, rates));
  const Outcome balanced = run(broadcast(64, rates));
  const std::array<std::size_t, 4> bytes = bytes_by_engine(balanced);
  // The slow engine's fair share is a 31st part, 8 of 256 messages; it has at least tried.
  EXPECT_GE(bytes[3], std::size_t{16384});
  EXPECT_LE(bytes[3], kPutBytes / 31 * 2);
  for (int engine = 0; engine < 3; ++engine) EXPECT_GT(bytes.at(static_cast<std::size_t>(engine)), kPutBytes / 4);
  // 3.1 hundredths of 50 GB/s are the bound. In turns the slow engine carries a quarter.
  const double bound_us = static_cast<double>(kPutBytes) / 1550;
  EXPECT_LT(microseconds(balanced), 1.05 * bound_us);
  EXPECT_GT(microseconds(turns), 5 * bound_us);
}

TEST(Engines, BringTheSameBitsWhateverTheirRates) {
  for (const char* const algorithm : {"ring", "trinaryx3", "bucket"}) {
    constexpr std::size_t kFew = std::size_t{256} << 10;
    Call call = make_call(algorithm, request_on("torus:3x2", 6, 4096), kFew);
    call.shape.fold = kernels::find(Op::sum, Type::f32, kernels::Isa::reference);
    call.fill = [](int rank, std::byte* out) { fill_operand(Type::f32, 7, rank, 0, kFew / sizeof(float), out); };
    const std::vector<std::byte> first = run(call).results.front();
    for (const std::vector<double>& rates : {std::vector<double>{1, 1, 1, 1}, {1, 0.1, 2, 0.003}}) {
      call.network.engine_rates = rates;
      for (const std::vector<std::byte>& result : run(call).results) EXPECT_EQ(result, first) << algorithm;
    }
  }
}

/// Before its first credits a stream holds back messages, and a run in which ranks hold back what others wait for ends
/// with an error here; over a network it would stand still for as long as has_waited() allows.
TEST(Engines, DoNotMakeRanksWaitForEachOther) {
  int calls = 0;
  for (const Algorithm& row : catalogue()) {
    for (const Collective collective :
         {Collective::broadcast, Collective::reduce, Collective::allreduce, Collective::all_gather,
          Collective::reduce_scatter, Collective::alltoall, Collective::scan, Collective::scatter}) {
      for (const auto& [topology, ranks] : {std::pair{"node", 5}, {"torus:3x2", 6}, {"torus:4x4", 16}}) {
        PlanRequest request = request_on(topology, ranks, 256, collective);
        request.tuning.window = request.tuning.slots;
        if (!row.why_not(request).empty()) continue;
        Call call = make_call(std::string(row.name).c_str(), request, std::size_t{240} << 10);
        call.network.engine_rates = {1, 1, 0.2, 0.01};
        EXPECT_NO_THROW(run(call)) << row.name << ", " << name(collective) << ", " << topology;
        ++calls;
      }
    }
  }
  EXPECT_GT(calls, 80);
}

TEST(Engines, GiveEqualTimesInEqualRuns) {
  const std::vector<double> rates = {0.01, 0.02, 0.005, 0.001};
  EXPECT_EQ(run(broadcast(64, rates)).time, run(broadcast(64, rates)).time);
}

}  // namespace
}  // namespace torii::simulated
