// SPDX-License-Identifier: Apache-2.0
// A row of the catalogue: an algorithm is a few pure functions of a request.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/expression.hpp"
#include "runtime/plan/plan.hpp"

namespace torii {

/// The measured rate of each of 1, 2, ... simultaneous streams from one site to another (torii-info measure).
struct StreamRates {
  std::string from;  ///< as SiteWay in sites.hpp names a way
  std::string to;
  std::vector<double> rates;  ///< rates[p - 1]: of each of p streams, in bytes per second
};

/// A call for which a row may make an estimate.
struct EstimateRequest {
  const PlanRequest& plan;
  std::size_t bytes = 0;                      ///< of the vector; SIZE_MAX: blocks of unequal lengths, not known yet
  bool several_nodes = false;                 ///< the ranks are on several nodes
  std::span<const StreamRates> streams = {};  ///< of the tune file
  bool is_tuned = false;                      ///< the tune table has a row for this call on this kind of topology
};

/// Lengths of vectors in bytes, from the least to the most.
struct ByteInterval {
  std::size_t least = 0;
  std::size_t most = SIZE_MAX;

  bool contains(std::size_t bytes) const noexcept { return least <= bytes && bytes <= most; }
  /// Keeps the lengths on the side of `bytes` of an interval's ends.
  void narrow(std::size_t bytes, const ByteInterval& other) noexcept {
    if (bytes < other.least) {
      most = std::min(most, other.least - 1);
    } else if (bytes > other.most) {
      least = std::max(least, other.most + 1);
    } else {
      *this = {std::max(least, other.least), std::min(most, other.most)};
    }
  }
};

/// How a row would serve a call.
struct CostEstimate {
  Tuning tuning = {};
  /// By the row's cost model. Infinite if the row has no model for the call, or leaves the call to the tune table. The
  /// tuning then serves when the algorithm is forced.
  double seconds = std::numeric_limits<double>::infinity();
  std::string why = {};
  ByteInterval holds = {};  ///< vectors of these lengths get the same estimate, or none too
};

/// Values of leaves that one rank gives to another one take turns on at most so many streams (LeafTurn).
inline constexpr int kLeafStreams = 12;

struct Algorithm {
  std::string_view name;    ///< as on command lines, e.g. "trinaryx3"
  std::string_view source;  ///< its paper and section
  /// Why the algorithm cannot serve this request, or an empty string.
  std::string (*why_not)(const PlanRequest& request);
  /// The plan of `rank`; call it only when why_not() is empty. Pure: equal requests give equal plans.
  Plan (*plan)(const PlanRequest& request, int rank);
  /// The declared order: the expression of every element of `block`, for combining collectives; of scan and exscan, of
  /// the result of that rank. The verifier compares it with the one it derives from the plans.
  ExpressionId (*order)(const PlanRequest& request, int block, ExpressionPool& pool);
  /// The estimate of this algorithm; the tuning of the request is ignored. It may be asked for calls that it cannot
  /// serve. Null: it has no cost model, and default_tuning() serves when it is forced.
  CostEstimate (*estimate)(const EstimateRequest& request) = nullptr;
  /// Fills in what a tuning from an estimate, a tune-table row or settings left open: radix 0, lanes 0. Null: nothing.
  CostEstimate (*complete)(const EstimateRequest& request) = nullptr;
  /// The declared least slots: the fewest with which plans of this request cannot deadlock where senders wait for
  /// counts (docs/verifier.md). Null: 1.
  int (*slots_least)(const PlanRequest& request) = nullptr;
  /// The most streams from a rank to another one, except over leaves, which have kLeafStreams more.
  int pair_streams = 2;
};

/// The declared least slots of a row.
inline int slots_least(const Algorithm& algorithm, const PlanRequest& request) {
  return algorithm.slots_least == nullptr ? 1 : algorithm.slots_least(request);
}
/// So many streams go at most from a rank to another one in plans of this request, of which `plan` is one. Equal on all
/// ranks.
inline int pair_streams_most(const Algorithm& algorithm, const PlanRequest& request, const Plan& plan) {
  const int most = std::min(plan.in_streams_max, plan.out_streams_max);
  return std::min(algorithm.pair_streams + (request.leaves == nullptr ? 0 : kLeafStreams), most);
}

}  // namespace torii
