// SPDX-License-Identifier: Apache-2.0
// What torii-info measure finds, and the files that it writes from that. Pure: nothing is measured here.
#pragma once

#include <string>
#include <vector>

#include "collectives/selection/selection.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// From one rank to another. Bytes per second of one stream, seconds one way.
struct MeasuredWay {
  double there = 0;
  double back = 0;
  double latency_s = 0;
};

struct MeasuredHost {
  std::string name;
  int site = 0;
  std::vector<int> ranks;
  MeasuredWay inside;   ///< between its first two ranks; unused where it has one
  MeasuredWay to_site;  ///< from the first rank of its site to its own first one; unused for that host itself
};

/// rates[a][b][p - 1]: each of p streams from site a to site b carries so many bytes per second; latency_s one way.
struct MeasuredNetwork {
  std::vector<MeasuredHost> hosts;  ///< in the order of their lowest ranks, and so are sites
  int sites = 1;
  std::vector<std::vector<double>> latency_s;
  std::vector<std::vector<std::vector<double>>> rates;
};

/// Hosts further apart than this, one way, are of different sites: as far as a long link of a tree begins.
double site_latency_s();

/// What each of 1, 2, ... streams carries for as long as it likes, where in transfers of `transfer_s` seconds (a round
/// trip less than until the answer came) it carried `rates`: a stream that does not fill the link begins with a window
/// for which it need not wait, on average half a window ahead.
std::vector<double> steady_rates(std::vector<double> rates, double latency_s, double transfer_s);

/// The text of a tree topology file: ranks hang on their host, hosts on their site, sites on each other (two) or on a
/// backbone whose branches fit the latencies best (three or more).
std::string tree_text(const MeasuredNetwork& network);

/// By pair of sites, as a tune file has it.
std::vector<StreamRates> stream_rates(const MeasuredNetwork& network);

/// The tune file `before` (empty: the built-in table) with these streams in place of its own.
std::string tune_text(const std::string& before, const std::vector<StreamRates>& streams);

/// For people, and the same as JSON.
Report report_network(const MeasuredNetwork& network);

}  // namespace torii::tools
