// SPDX-License-Identifier: Apache-2.0
// Lanes, bars, arrows and marks on a compressed axis of time.
#include "tools/torii-sim/faults/picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "collectives/drawing/svg.hpp"

namespace torii::faults {
namespace {

using fibers::Time;

constexpr double kLeft = 70;
constexpr double kWidth = 1400;
constexpr double kTop = 60;
constexpr double kLane = 64;
constexpr double kBar = 22;
constexpr double kLetter = 5.6;  // about the width of one at this size of font
constexpr int kFont = 10;

/// Places on the axis of time: between two moments that the picture shows, room grows with the logarithm of the time.
class Axis {
 public:
  explicit Axis(const std::set<Time>& moments) {
    Time last = 0;
    for (const Time moment : moments) {
      if (places_.empty()) {
        places_[moment] = 0;
      } else {
        const double us = static_cast<double>(moment - last) / fibers::kMicrosecond;
        end_ += std::log2(1 + us);
        places_[moment] = end_;
      }
      last = moment;
    }
  }
  double x(Time time) const {
    const auto after = places_.lower_bound(time);
    if (after == places_.end()) return at(end_);
    if (after->first == time || after == places_.begin()) return at(after->second);
    const auto before = std::prev(after);
    const double part = static_cast<double>(time - before->first) / static_cast<double>(after->first - before->first);
    return at(before->second + part * (after->second - before->second));
  }
  /// Moments that are far enough from each other to be named.
  std::vector<Time> named() const {
    constexpr double kApart = 70;
    std::vector<Time> chosen;
    for (const auto& [time, place] : places_) {
      if (chosen.empty() || at(place) - x(chosen.back()) >= kApart) chosen.push_back(time);
    }
    return chosen;
  }

 private:
  double at(double place) const { return kLeft + (end_ == 0 ? 0 : place / end_ * kWidth); }

  std::map<Time, double> places_;
  double end_ = 0;
};

double lane_y(int rank) { return kTop + kLane * rank + kLane / 2; }

std::string time_text(Time time) {
  if (time < 10 * fibers::kMillisecond) return svg_text(static_cast<double>(time) / fibers::kMicrosecond) + " us";
  return svg_text(static_cast<double>(time) / fibers::kMillisecond) + " ms";
}

struct Colour {
  const char* what;
  const char* colour;
};
constexpr Colour kStatuses[] = {{"ok", "#9ed39e"},           {"timeout", "#e9b44c"},   {"mismatch", "#d88fc0"},
                                {"aborted", "#e58a6a"},      {"poisoned", "#d8c3b8"},  {"no_resource", "#8fb4e0"},
                                {"peer_lost", "#e06a6a"},    {"transport", "#b58ae0"}, {"", "#bbbbbb"},
                                {"another cause", "#c9a0a0"}};
constexpr Colour kMarks[] = {{"dies", "#000000"},
                             {"is stopped", "#e07b00"},
                             {"runs again", "#3c9a3c"},
                             {"loses an engine", "#8b2fc9"},
                             {"is refused", "#1f5fbf"}};

std::string colour_of(const std::string& status) {
  const auto* const found = std::ranges::find(kStatuses, status, [](const Colour& one) { return one.what; });
  return found != std::end(kStatuses) ? found->colour : std::prev(std::end(kStatuses))->colour;
}

/// When the rank died, or the picture ends.
Time end_of(const EventLog& log, int rank, Time end) {
  const auto death =
      std::ranges::find_if(log.marks, [&](const Mark& mark) { return mark.rank == rank && mark.what == "dies"; });
  return death == log.marks.end() ? end : death->time;
}

void draw_acts(Svg& svg, const Axis& axis, const EventLog& log, Time end) {
  for (const Act& act : log.acts) {
    const double left = axis.x(act.begun);
    const Time ended = act.ended < 0 ? end_of(log, act.rank, end) : act.ended;
    const double width = std::max(axis.x(ended) - left, 1.0);
    const std::string title = act.name + ": " + (act.ended < 0 ? "did not end" : act.status) + ", from " +
                              time_text(act.begun) + (act.ended < 0 ? "" : " to " + time_text(act.ended));
    svg.rect({left, lane_y(act.rank) - kBar / 2}, width, kBar,
             "fill=" + colour_of(act.status) + " stroke=#555 stroke-width=0.4", title);
    const auto letters = static_cast<std::size_t>(width / kLetter);
    if (letters >= 4) svg.text(left + 3, lane_y(act.rank) + 4, act.name.substr(0, letters - 1), {}, title);
  }
}

/// Arrows whose ends are close to each other are one, the thicker the more of them there are.
void draw_arrows(Svg& svg, const Axis& axis, const EventLog& log) {
  constexpr double kTogether = 14;
  std::map<std::tuple<int, int, int, int>, int> groups;
  for (const Arrow& arrow : log.arrows) {
    ++groups[{arrow.from, arrow.to, static_cast<int>(axis.x(arrow.sent) / kTogether),
              static_cast<int>(axis.x(arrow.arrived) / kTogether)}];
  }
  for (const auto& [ends, count] : groups) {
    const auto [from, to, sent, arrived] = ends;
    const double side = from < to ? kBar / 2 : -kBar / 2;
    const double width = std::min(0.4 + 0.3 * std::log2(count), 2.5);
    svg.line({(sent + 0.5) * kTogether, lane_y(from) + side}, {(arrived + 0.5) * kTogether, lane_y(to) - side},
             "stroke=#4a6fa5 stroke-opacity=0.55 marker-end=url(#put) stroke-width=" + svg_text(std::max(width, 0.1)),
             std::to_string(count) + (count == 1 ? " put" : " puts") + " from rank " + std::to_string(from) +
                 " to rank " + std::to_string(to));
  }
}

void draw_marks(Svg& svg, const Axis& axis, const EventLog& log) {
  for (const Mark& mark : log.marks) {
    const auto* const kind =
        std::ranges::find_if(kMarks, [&](const Colour& one) { return mark.what.starts_with(one.what); });
    const std::string colour = kind != std::end(kMarks) ? kind->colour : "#000000";
    const double x = axis.x(mark.time);
    const double y = lane_y(mark.rank);
    svg.line({x, y - kLane / 2 + 4}, {x, y + kLane / 2 - 4}, "stroke-width=2 stroke=" + colour);
    svg.circle({x, y - kLane / 2 + 6}, 4, "fill=" + colour, mark.what + " at " + time_text(mark.time));
    svg.text(x + 7, y - kLane / 2 + 10, mark.what, "font-weight=bold fill=" + colour);
  }
}

void draw_legend(Svg& svg, double y) {
  double x = kLeft;
  for (const Colour& one : kStatuses) {
    const std::string what = *one.what == '\0' ? "did not end" : one.what;
    svg.rect({x, y - 9}, 12, 12, std::string("stroke=#555 stroke-width=0.4 fill=") + one.colour);
    svg.text(x + 16, y + 1, what);
    x += 40 + kLetter * static_cast<double>(what.size());
  }
  svg.text(x, y + 1,
           "arrows: puts, thicker for more of them; marks: faults; time: compressed where nothing begins or ends");
}

}  // namespace

std::string draw(const History& history, const EventLog& log) {
  std::set<Time> moments = {0};
  for (const Act& act : log.acts) moments.insert({act.begun, std::max(act.begun, act.ended)});
  for (const Mark& mark : log.marks) moments.insert(mark.time);
  const Axis axis(moments);
  const double height = kTop + kLane * history.ranks() + 40;
  Svg svg(kLeft + kWidth + 60, height, kFont);
  const std::string words = text_of(history);
  svg.title(words.substr(0, words.find('\n')));
  svg.text(10, 18, words.substr(0, words.find('\n')), "font-size=12");
  svg.arrow_head("put", "#4a6fa5", 4, "markerUnits=userSpaceOnUse");
  for (const Time time : axis.named()) {
    svg.line({axis.x(time), kTop - 8}, {axis.x(time), height - 40}, "stroke=#e4e4e4");
    svg.text(axis.x(time) + 2, kTop - 12, time_text(time), "fill=#777");
  }
  for (int rank = 0; rank < history.ranks(); ++rank) {
    const Time end = end_of(log, rank, *moments.rbegin());
    svg.line({kLeft, lane_y(rank)}, {axis.x(end), lane_y(rank)}, "stroke=#aaa");
    svg.text(10, lane_y(rank) - 3, "rank " + std::to_string(rank));
    svg.text(10, lane_y(rank) + 10, "node " + std::to_string(history.job.nodes[static_cast<std::size_t>(rank)]),
             "fill=#777");
  }
  draw_arrows(svg, axis, log);
  draw_acts(svg, axis, log, *moments.rbegin());
  draw_marks(svg, axis, log);
  draw_legend(svg, height - 14);
  return svg.str();
}

}  // namespace torii::faults
