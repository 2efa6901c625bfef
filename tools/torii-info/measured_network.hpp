// SPDX-License-Identifier: Apache-2.0
// The results of torii-info measure, and the files that it writes from them. Pure: nothing is measured here.
#pragma once

#include <string>
#include <vector>

#include "collectives/selection/selection.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {

/// From one rank to another. Rate of one stream in bytes per second, latency in seconds one way.
struct MeasuredWay {
  double there = 0;
  double back = 0;
  double latency_s = 0;
};

struct MeasuredHost {
  std::string name;
  int site = 0;
  std::vector<int> ranks;
  MeasuredWay inside;   ///< between its first two ranks; unused if it has one
  MeasuredWay to_site;  ///< from the first rank of its site to its own first one; unused for the site's first host
};

/// rates[a][b][p - 1]: the rate of each of p streams from site a to site b, in bytes per second; latency_s one way.
struct MeasuredNetwork {
  std::vector<MeasuredHost> hosts;  ///< in the order of their lowest ranks, and so are sites
  int sites = 1;
  std::vector<std::vector<double>> latency_s;
  std::vector<std::vector<std::vector<double>>> rates;
};

/// Hosts with a longer one-way latency belong to different sites. It is the least latency of a tree's long link.
double site_latency_s();

/// The lasting rate of each of 1, 2, ... streams, from `rates` in transfers of `transfer_s` seconds (a round trip less
/// than the time until the answer came). A stream that does not fill the link starts with a window that need not wait,
/// on average half a window ahead.
std::vector<double> steady_rates(std::vector<double> rates, double latency_s, double transfer_s);

/// The text of a tree topology file: ranks on their host, hosts on their site, sites on each other (two) or on a
/// backbone whose branches fit the latencies best (three or more).
std::string tree_text(const MeasuredNetwork& network);

/// By pair of sites, in the form of a tune file.
std::vector<StreamRates> stream_rates(const MeasuredNetwork& network);

/// The tune file `before` (empty: the built-in table) with these streams in place of its own.
std::string tune_text(const std::string& before, const std::vector<StreamRates>& streams);

/// For people, and the same as JSON.
Report report_network(const MeasuredNetwork& network);

}  // namespace torii::tools
