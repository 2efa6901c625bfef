// SPDX-License-Identifier: Apache-2.0
// The answer of `torii-info plan` as text, JSON and picture.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/drawing/draw.hpp"
#include "collectives/drawing/draw_schedule.hpp"
#include "collectives/schedules/schedule.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/settings.hpp"
#include "runtime/plan/ring_rules.hpp"
#include "tools/torii-info/plan.hpp"
#include "tools/torii-info/proof_report.hpp"
#include "tools/torii-info/report.hpp"

namespace torii::tools {
namespace {

constexpr std::size_t kOrderLinesMost = 16;
constexpr std::size_t kOrderCharacters = 160;
constexpr std::size_t kOrderCharactersJson = 10000;

/// Blocks whose elements have one order, and this order.
struct OrderGroup {
  ExpressionId order = kNoExpression;
  std::vector<int> blocks;
};

std::vector<OrderGroup> group_orders(const std::vector<ExpressionId>& orders) {
  std::vector<OrderGroup> groups;
  for (std::size_t block = 0; block < orders.size(); ++block) {
    if (orders[block] == kNoExpression) continue;  // rank 0 of an exscan has no result
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.order == orders[block]; });
    if (group == groups.end()) group = groups.insert(group, {orders[block], {}});
    group->blocks.push_back(static_cast<int>(block));
  }
  return groups;
}

/// `noun`: "block", or "rank" if every rank has its own result.
std::string numbers_text(const std::string& noun, const std::vector<int>& blocks) {
  constexpr std::size_t kShown = 8;
  std::string text = blocks.size() == 1 ? noun : noun + "s";
  for (std::size_t i = 0; i < std::min(blocks.size(), kShown); ++i) text += fmt::format(" {}", blocks[i]);
  if (blocks.size() > kShown) text += fmt::format(" ... {}", blocks.back());
  return text;
}

void add_question(const PlanAnswer& answer, Report& report) {
  const PlanRequest& request = answer.selected.request;
  std::string text = fmt::format("{} on {}, {} ranks{}", name(request.collective), request.topology.text(),
                                 request.topology.ranks(), answer.several_nodes ? " on several nodes" : "");
  Json& json = report.json;
  json["collective"] = name(request.collective);
  json["topology"] = request.topology.text();
  json["ranks"] = request.topology.ranks();
  json["several_nodes"] = answer.several_nodes;
  if (has_root(request.collective)) {
    text += fmt::format(", root {}", request.root);
    json["root"] = request.root;
  }
  if (request.collective != Collective::barrier) {
    text += fmt::format(", {} ({} elements of {}{}), determinism {}", bytes_text(answer.bytes), answer.elements,
                        answer.type, answer.wide() ? ", partial results in f32" : "", name(request.determinism));
    json["bytes"] = answer.bytes;
    json["elements"] = answer.elements;
    json["type"] = answer.type;
    json["wide"] = answer.wide();
  }
  json["determinism"] = name(request.determinism);
  report.text += row<10>("call", text);
}

void add_choice(const PlanAnswer& answer, Report& report) {
  const Algorithm& algorithm = *answer.selected.algorithm;
  const Tuning& tuning = answer.selected.request.tuning;
  report.text += row<10>("algorithm", std::string(algorithm.name));
  report.text += row<10>("why", answer.why);
  report.text += row<10>("source", std::string(algorithm.source));
  const std::string radix = algorithm.name == "floyd" ? fmt::format(", radix {}", tuning.radix) : "";
  report.text +=
      row<10>("tuning", fmt::format("segment {}, slots {}, window {}{}{}", bytes_text(tuning.segment_bytes),
                                    tuning.slots, tuning.window, tuning.one_shot ? ", one_shot" : "", radix));
  const ByteInterval& holds = answer.selected.holds;
  if (answer.selected.request.collective != Collective::barrier) {
    report.text +=
        row<10>("class", fmt::format("lengths from {} {} share this choice, and a call plan", bytes_text(holds.least),
                                     holds.most == SIZE_MAX ? "on" : "to " + bytes_text(holds.most)));
  }
  Json& json = report.json;
  json["class"] = {{"bytes_least", holds.least}, {"bytes_most", holds.most}};
  json["algorithm"] = algorithm.name;
  json["why"] = answer.why;
  json["source"] = algorithm.source;
  json["tuning"] = {{"segment_bytes", tuning.segment_bytes},
                    {"slots", tuning.slots},
                    {"window", tuning.window},
                    {"one_shot", tuning.one_shot},
                    {"radix", tuning.radix}};
  json["others"] = Json::array();
  std::string heading = "others";
  for (const auto& [other, why_not] : answer.others) {
    const int least = why_not.empty() ? slots_least(*find_algorithm(other), answer.selected.request) : 0;
    std::string would = "would serve if forced";
    if (least > 1) would += fmt::format("; needs {} of {} slots", least, tuning.slots);
    report.text += row<10>(heading, fmt::format("{}: {}", other, why_not.empty() ? would : why_not));
    json["others"].push_back({{"algorithm", other}, {"why_not", why_not}});
    if (why_not.empty()) json["others"].back()["slots_least"] = least;
    heading.clear();
  }
}

void add_rings(const PlanAnswer& answer, Report& report) {
  const Plan& plan = answer.shown.front();
  const RingSizes& rings = answer.rings;
  const int size = distant_size_of(plan, answer.selected.request.tuning.segment_bytes, answer.widening);
  const KindSizes kind = rings.of(ring_kind(plan, size));
  const int streams = rings_of(plan);
  std::string text = fmt::format(
      "{} from a rank to another one, each with {} entries; the longest messages of a call take {} of an outbox of {}",
      streams, kind.entries, bytes_text(answer.extent_bytes), bytes_text(rings.outbox_bytes));
  if (answer.several_nodes) text += fmt::format("; {} messages share a credit", kind.credit_group);
  report.text += row<10>("rings", text);
  report.json["rings"] = {{"streams", streams},
                          {"entries", kind.entries},
                          {"credit_group", kind.credit_group},
                          {"slots", plan.slots},
                          {"in_streams_max", plan.in_streams_max},
                          {"out_streams_max", plan.out_streams_max},
                          {"call_bytes", answer.extent_bytes},
                          {"outbox_bytes", rings.outbox_bytes}};
}

/// What the numbers of an expression are.
std::string kind_of_number(const PlanAnswer& answer) {
  const bool has_leaves = answer.selected.request.leaves != nullptr;
  return fmt::format("a number is that {}, (a b) is a op b", has_leaves ? "leaf's vector" : "rank's operand");
}

void add_orders(const PlanAnswer& answer, Report& report) {
  report.json["orders"] = Json::array();
  const std::vector<OrderGroup> groups = group_orders(answer.orders);
  std::string heading = "order";
  const bool by_rank = is_prefix(answer.selected.request.collective);
  const std::string noun = by_rank ? "rank" : "block";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [order, blocks] = groups[i];
    report.json["orders"].push_back(
        {{noun + "s", blocks}, {"expression", answer.pool.text(order, kOrderCharactersJson)}});
    if (i >= kOrderLinesMost) continue;
    report.text += row<10>(heading, numbers_text(noun, blocks) + ": " + answer.pool.text(order, kOrderCharacters));
    heading.clear();
  }
  if (groups.size() > kOrderLinesMost) {
    report.text += row<10>("", fmt::format("... and {} more (--json has all)", groups.size() - kOrderLinesMost));
  }
  const Plan& shown = answer.shown.front();
  const auto all = static_cast<std::size_t>(by_rank ? shown.ranks : shown.blocks);
  if (!groups.empty() && answer.orders.size() < all) {
    report.text +=
        row<10>("", fmt::format("the first {} of {} {}s; all with --verify", answer.orders.size(), all, noun));
  }
  if (!groups.empty()) report.text += row<10>("", kind_of_number(answer));
}

Json ends_json(const std::vector<StreamEnd>& ends, const std::vector<Stream>& streams) {
  constexpr const char* kDeliveries[] = {"through_slots", "read_in_place", "write_in_place", "local"};
  Json json = Json::array();
  for (const StreamEnd& end : ends) {
    if (end.stream == kOwn) {
      json.push_back(end.position == 0 ? "own" : "own " + std::to_string(end.position));
      continue;
    }
    const Stream& stream = streams[end.stream];
    json.push_back({{"peer", stream.peer},
                    {"tag", stream.tag},
                    {"position", end.position},
                    {"delivery", kDeliveries[static_cast<std::size_t>(stream.delivery)]},
                    {"wide", stream.wide},
                    {"is_awaited", stream.is_awaited}});
  }
  return json;
}

Json exchange_json(const Plan& plan) {
  const PairwiseExchange& exchange = plan.exchange;
  Json json = {{"order", exchange.order->name()},
               {"in_flight", exchange.in_flight},
               {"to", Json::array()},
               {"from", Json::array()}};
  for (int transfer = 0; transfer < exchange.order->transfers(); ++transfer) {
    const int receiver = exchange.order->receiver(plan.rank, transfer);
    const int sender = exchange.order->sender(plan.rank, transfer);
    if (exchange.sends(plan.rank) && exchange.takes(receiver)) json["to"].push_back(receiver);
    if (exchange.takes(plan.rank) && exchange.sends(sender)) json["from"].push_back(sender);
  }
  return json;
}

Json plan_json(const Plan& plan) {
  Json json = {{"rank", plan.rank}, {"lanes", Json::array()}};
  for (const Lane& lane : plan.lanes) {
    Json flows = Json::array();
    for (const Flow& flow : lane.flows) {
      Json blocks = Json::array();
      for (int place = 0; place < flow.walk.count; ++place) blocks.push_back(flow.walk.block(place));
      flows.push_back({{"label", flow.label},
                       {"fold", flow.fold == Fold::left ? "left" : "canonical"},
                       {"sources", ends_json(flow.sources, plan.in)},
                       {"keep", flow.keep},
                       {"targets", ends_json(flow.targets, plan.out)},
                       {"blocks", std::move(blocks)}});
    }
    json["lanes"].push_back({{"window", lane.window}, {"flows", std::move(flows)}});
  }
  if (plan.exchange.exists()) json["exchange"] = exchange_json(plan);
  return json;
}

void add_plans(const PlanAnswer& answer, Report& report) {
  const int ranks = answer.selected.request.topology.ranks();
  report.text += "\n" + draw_text(answer.selected.request, answer.shown);
  if (static_cast<int>(answer.shown.size()) < ranks) {
    report.text += fmt::format("one of {} ranks; another one with --rank\n", ranks);
  }
  const Plan& plan = answer.shown.front();
  report.json["blocks"] = plan.blocks;
  report.json["dealing"] = plan.dealing == Dealing::block ? "block" : "block_cyclic";
  report.json["plans"] = Json::array();
  for (const Plan& shown : answer.shown) report.json["plans"].push_back(plan_json(shown));
}

/// The schedule from which plans of `scheduled` on a tree of links were made; nullptr for other plans.
std::shared_ptr<const Schedule> schedule_of(const PlanAnswer& answer) {
  const PlanRequest& request = answer.selected.request;
  if (answer.selected.algorithm->name != "scheduled" || request.topology.tree() == nullptr) return nullptr;
  return kept_schedule(request.topology, request.root, request.tuning.segment_bytes,
                       request.collective == Collective::reduce);
}

void add_schedule(const PlanAnswer& answer, const Schedule& schedule, Report& report) {
  const bool backwards = answer.selected.request.collective == Collective::reduce;
  const std::string proof =
      schedule.proven ? "proven least" : fmt::format("not proven least, gap {:.3f} %", 100 * schedule.gap());
  report.text +=
      fmt::format("\nschedule of {} bytes{}: {:.4f} ms, {}\n{}", answer.selected.request.tuning.segment_bytes,
                  backwards ? ", of a broadcast that is run backwards" : "", 1e3 * schedule.time_s, proof,
                  draw_schedule_text(schedule));
  Json& json = report.json["schedule"];
  json = {{"time_us", 1e6 * schedule.time_s}, {"proven", schedule.proven}, {"gap", schedule.gap()}};
  for (const Transfer& transfer : schedule.transfers) {
    json["transfers"].push_back({{"sender", transfer.sender},
                                 {"receiver", transfer.receiver},
                                 {"start_us", 1e6 * transfer.start_s},
                                 {"end_us", 1e6 * transfer.end_s}});
  }
}

std::string draw(const PlanAnswer& found, const Schedule* schedule) {
  const PlanRequest& request = found.selected.request;
  if (schedule == nullptr) return draw_svg(request, found.all);
  const bool backwards = request.collective == Collective::reduce;
  return draw_schedule_svg(*request.topology.tree(), *schedule,
                           fmt::format("{} on {}, root {}: {:.4f} ms", name(request.collective),
                                       request.topology.text(), request.root, 1e3 * schedule->time_s),
                           backwards);
}

}  // namespace

Report report_plan(const PlanAnswer& found) {
  Report report;
  add_question(found, report);
  add_choice(found, report);
  add_rings(found, report);
  add_orders(found, report);
  add_verdict(found, report);
  add_plans(found, report);
  const std::shared_ptr<const Schedule> schedule = schedule_of(found);
  if (schedule != nullptr) add_schedule(found, *schedule, report);
  if (!found.all.empty()) report.svg = draw(found, schedule.get());
  return report;
}

}  // namespace torii::tools
