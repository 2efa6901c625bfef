// SPDX-License-Identifier: Apache-2.0
// Reads the redistribution, and prints both bounds beside floyd's rounds.
#include "tools/torii-info/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "collectives/building/floyd_hops.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/status.hpp"
#include "tools/torii-info/phase_bound.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {
namespace {

constexpr int kPhaseRanksMax = 4096;
constexpr std::uint64_t kItemsMax = std::uint64_t{1} << 26;

/// "100x60" for the separator 'x': two whole numbers, the first at least 1.
std::optional<std::pair<std::uint64_t, std::uint64_t>> read_pair(std::string_view text, char separator) {
  const auto first = take_number<std::uint64_t>(text);
  if (!first || !text.starts_with(separator)) return std::nullopt;
  const auto second = parse_number<std::uint64_t>(text.substr(1));
  if (!second || *first < 1 || *first > kItemsMax) return std::nullopt;
  return std::pair(*first, *second);
}

Holdings read_holdings(const PhasesQuestion& question) {
  const std::string_view of = question.of;
  const auto ranks = static_cast<std::size_t>(question.ranks);
  if (of == "alltoall") return Holdings(ranks * ranks, 1);
  const std::string_view what = of.substr(0, of.find(':'));
  const std::string_view rest = what.size() == of.size() ? "" : of.substr(what.size() + 1);
  if (what == "transpose") {
    const auto shape = read_pair(rest, 'x');
    if (shape && shape->second >= 1 && shape->second <= kItemsMax) {
      return transpose_holdings(shape->first, shape->second, question.ranks);
    }
  }
  if (what == "rotate" || what == "shuffle") {
    if (const auto items = read_pair(rest, '+')) {
      std::vector<std::uint64_t> destinations(items->first);
      std::iota(destinations.begin(), destinations.end(), std::uint64_t{0});
      if (what == "rotate") {
        const auto shift = static_cast<std::ptrdiff_t>(items->second % items->first);
        std::rotate(destinations.begin(), destinations.begin() + shift, destinations.end());
      } else {
        std::mt19937_64 random(items->second);
        for (std::size_t i = destinations.size() - 1; i > 0; --i)
          std::swap(destinations[i], destinations[random() % (i + 1)]);
      }
      return permutation_holdings(destinations, question.ranks);
    }
  }
  invalid(
      fmt::format("--of is '{}'; it must be alltoall, transpose:ROWSxCOLUMNS, rotate:ITEMS+SHIFT or "
                  "shuffle:ITEMS+SEED, with at most {} of each",
                  of, kItemsMax));
}

}  // namespace

Report phases(const PhasesQuestion& question) {
  if (question.ranks < 1 || question.ranks > kPhaseRanksMax) {
    invalid(fmt::format("--ranks is {}; it must be from 1 to {}", question.ranks, kPhaseRanksMax));
  }
  const Holdings holdings = read_holdings(question);
  Report report;
  report.text = row<8>("of", fmt::format("{} on {} ranks", question.of, question.ranks));
  report.json = {{"of", question.of}, {"ranks", question.ranks}};
  for (const PhaseKind kind : {PhaseKind::pairs, PhaseKind::rounds}) {
    const PhaseBound bound = phase_bound(holdings, question.ranks, kind);
    report.text += row<8>(std::string(name(kind)),
                          fmt::format("at least {}: {} by potential ({:.6g} to {:.6g}, {:.6g} a phase), {} by reach",
                                      bound.least, bound.by_potential, bound.potential_before, bound.potential_after,
                                      bound.gain_most, bound.by_reach));
    report.json[std::string(name(kind))] = {{"least", bound.least},
                                            {"by_potential", bound.by_potential},
                                            {"by_reach", bound.by_reach},
                                            {"potential_before", bound.potential_before},
                                            {"potential_after", bound.potential_after},
                                            {"gain_most", bound.gain_most}};
  }
  const int rounds = FloydHops(question.ranks, 2).rounds();
  report.text += row<8>("floyd", fmt::format("{} rounds with radix 2, whatever moves", rounds));
  report.json["floyd"] = rounds;
  return report;
}

}  // namespace torii::tools
