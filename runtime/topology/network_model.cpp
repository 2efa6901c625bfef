// SPDX-License-Identifier: Apache-2.0
// Computes the rates of flows that share links: by the least share among their links, or by water-filling.
#include "runtime/topology/network_model.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "runtime/base/index.hpp"

namespace torii {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

std::string_view name(Sharing sharing) noexcept { return sharing == Sharing::min ? "min" : "maxmin"; }

LinkSharing::LinkSharing(int links, int flows, Sharing sharing, std::span<const double> bandwidths)
    : sharing_(sharing), links_(index(links)), flows_(index(flows)) {
  for (std::size_t link = 0; link < bandwidths.size(); ++link) links_[link].bandwidth = bandwidths[link];
}

void LinkSharing::note(int link) {
  Link& at = links_[index(link)];
  if (at.is_changed) return;
  at.is_changed = true;
  changed_links_.push_back(link);
}

void LinkSharing::mark(int flow) {
  Flow& at = flows_[index(flow)];
  if (at.is_marked) return;
  at.is_marked = true;
  marked_.push_back(flow);
}

void LinkSharing::start(int flow, std::span<const Use> uses) {
  Flow& started = flows_[index(flow)];
  started.uses.assign(uses.begin(), uses.end());
  started.places.clear();
  started.rate = uses.empty() ? kUnlimited : 0;
  started.is_active = true;
  for (const Use& use : uses) {
    Link& link = links_[index(use.link)];
    started.places.push_back(static_cast<int>(link.visitors.size()));
    link.visitors.push_back({flow, static_cast<int>(started.places.size()) - 1});
    link.load += use.times;
    note(use.link);
  }
  mark(flow);
}

void LinkSharing::end(int flow) {
  Flow& ended = flows_[index(flow)];
  for (std::size_t i = 0; i < ended.uses.size(); ++i) {
    Link& link = links_[index(ended.uses[i].link)];
    const Visitor last = link.visitors.back();
    link.visitors.pop_back();
    if (last.flow != flow) {
      link.visitors[index(ended.places[i])] = last;
      flows_[index(last.flow)].places[index(last.use)] = ended.places[i];
    }
    link.load -= ended.uses[i].times;
    note(ended.uses[i].link);
  }
  ended.uses.clear();
  ended.is_active = false;
}

std::span<const int> LinkSharing::settle() {
  changed_flows_.clear();
  sharing_ == Sharing::min ? settle_min() : settle_maxmin();
  for (const int link : changed_links_) {
    Link& at = links_[index(link)];
    at.is_changed = false;
    at.settled = at.load;
    at.most = std::max(at.most, at.load);
  }
  changed_links_.clear();
  for (const int flow : marked_) flows_[index(flow)].is_marked = false;
  marked_.clear();
  return changed_flows_;
}

void LinkSharing::settle_min() {
  // A link can change a flow's rate only if its share is now below that rate, or was the rate and has grown.
  for (const int number : changed_links_) {
    const Link& link = links_[index(number)];
    if (link.load == link.settled) continue;
    const double share = link.bandwidth / link.load;
    const double settled = link.settled == 0 ? kUnlimited : link.bandwidth / link.settled;
    for (const Visitor& visitor : link.visitors) {
      const double rate = flows_[index(visitor.flow)].rate;
      if (share < rate || settled == rate) mark(visitor.flow);
    }
  }
  for (const int number : marked_) {
    Flow& flow = flows_[index(number)];
    if (!flow.is_active) continue;
    double rate = kUnlimited;
    for (const Use& use : flow.uses) {
      const Link& link = links_[index(use.link)];
      rate = std::min(rate, link.bandwidth / link.load);
    }
    if (rate == flow.rate && !flow.uses.empty()) continue;
    flow.rate = rate;
    changed_flows_.push_back(number);
  }
}

void LinkSharing::settle_maxmin() {
  // (the equal share of each flow on the link that has no rate yet, link)
  using Share = std::pair<double, int>;
  std::priority_queue<Share, std::vector<Share>, std::greater<>> shares;
  for (std::size_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    link.left = link.bandwidth;
    link.waiting = link.load;
    if (link.load > 0) shares.emplace(link.bandwidth / link.load, static_cast<int>(number));
  }
  for (Flow& flow : flows_) {
    flow.old_rate = flow.rate;
    if (flow.is_active && !flow.uses.empty()) flow.rate = 0;
  }
  while (!shares.empty()) {
    const auto [share, number] = shares.top();
    shares.pop();
    Link& link = links_[index(number)];
    if (link.waiting == 0) continue;
    // Shares only grow while flows get their rates, so an outdated share is queued again.
    const double now = std::max(link.left, 0.0) / link.waiting;
    if (now > share) {
      shares.emplace(now, number);
      continue;
    }
    for (const Visitor& visitor : link.visitors) {
      Flow& flow = flows_[index(visitor.flow)];
      if (flow.rate > 0) continue;
      flow.rate = share;
      for (const Use& use : flow.uses) {
        links_[index(use.link)].left -= share * use.times;
        links_[index(use.link)].waiting -= use.times;
      }
    }
  }
  for (std::size_t number = 0; number < flows_.size(); ++number) {
    const Flow& flow = flows_[number];
    if (flow.is_active && (flow.rate != flow.old_rate || flow.is_marked)) {
      changed_flows_.push_back(static_cast<int>(number));
    }
  }
}

}  // namespace torii
