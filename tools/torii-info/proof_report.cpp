// SPDX-License-Identifier: Apache-2.0
// The verdict as text and JSON.
#include "tools/torii-info/proof_report.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/torii-info/report.hpp"

namespace torii::tools {
namespace {

/// A property that was proved, with its figure. 0: the plans have no such thing.
struct Property {
  std::string_view name;
  int count;
  std::string text;
};

std::string data_text(Collective collective) {
  if (collective == Collective::barrier) return "no rank leaves before all have entered";
  if (!combines(collective)) return "result blocks hold the operand that they should";
  return "result blocks hold each operand once, in the declared order";
}

std::vector<Property> properties_of(const PlanAnswer& answer) {
  const Proofs& proofs = answer.verdict->proofs;
  const PlanRequest& request = answer.selected.request;
  const bool is_barrier = request.collective == Collective::barrier;
  return {
      {"data", is_barrier ? request.topology.ranks() : proofs.results,
       is_barrier ? "ranks: " + data_text(request.collective) : data_text(request.collective)},
      {"deadlock", proofs.steps, "steps never wait for each other in a circle"},
      {"buffers", proofs.writes, "writes of result blocks lose nothing; input and result separate or the same memory"},
      {"in place", proofs.read_in_place + proofs.write_in_place,
       fmt::format("streams work in place and by value: {} read an operand, {} write a result", proofs.read_in_place,
                   proofs.write_in_place)},
      {"bundles", proofs.bundled, "streams signal a shared slot once, after its last message"},
      {"shared copies", proofs.shared, "streams share a copy of their payload with another stream"},
      {"private reads", proofs.read_privately, "streams may be copied out of the sender's private memory"},
      {"buffer offers", proofs.offers, "pairs of ranks: each offer is read before the next one is made"},
      {"sent in place", proofs.sent_in_place, "flows may be sent from the caller's vector, between nodes"},
      {"linear programs", proofs.lists, "ranks run the plan as a list of steps if the vector has one segment"},
      {"one signal", proofs.transfers, "blocks go in place in portions, with one signal or one release at the end"},
      {"rings", proofs.rings, "at most from one rank to another; by their tags both ends know which stream uses which"},
      {"fewest slots", answer.verdict->slots_least,
       "per stream, where senders wait for a count of messages taken in order"},
  };
}

Json proofs_json(const Proofs& proofs) {
  return {{"results", proofs.results},
          {"steps", proofs.steps},
          {"writes", proofs.writes},
          {"read_in_place", proofs.read_in_place},
          {"write_in_place", proofs.write_in_place},
          {"rings", proofs.rings},
          {"bundled", proofs.bundled},
          {"shared", proofs.shared},
          {"read_privately", proofs.read_privately},
          {"offers", proofs.offers},
          {"sent_in_place", proofs.sent_in_place},
          {"lists", proofs.lists},
          {"transfers", proofs.transfers}};
}

}  // namespace

void add_verdict(const PlanAnswer& answer, Report& report) {
  if (!answer.verdict) {
    report.text += row<10>("proof", "not made, it takes long on so many ranks: --verify");
    report.json["verdict"] = nullptr;
    return;
  }
  const Verdict& verdict = *answer.verdict;
  Json& json = report.json["verdict"];
  json = {{"ok", verdict.ok()},
          {"faults", verdict.faults},
          {"height", verdict.height},
          {"slots_least", verdict.slots_least},
          {"busiest_link_messages", verdict.busiest_link_messages},
          {"links_shared", verdict.links_shared},
          {"links_shared_percent", verdict.links_shared_percent}};
  if (!verdict.ok()) {
    report.code = 1;
    report.text += row<10>("proof", "FAULTS");
    for (const std::string& fault : verdict.faults) report.text += row<10>("", fault);
    return;
  }
  json["proofs"] = proofs_json(verdict.proofs);
  report.text += row<10>(
      "proof", fmt::format("ok for every length: height {}, least slots {}", verdict.height, verdict.slots_least));
  std::string_view heading = "proved";
  for (const auto& [name, count, text] : properties_of(answer)) {
    report.text +=
        row<10>(heading, fmt::format("{:<16}{}", name, count == 0 ? "none" : fmt::format("{} {}", count, text)));
    heading = "";
  }
  const std::string links =
      fmt::format("busiest carries {:g} messages per segment, {} shared in a step ({:.1f} %)",
                  verdict.busiest_link_messages, verdict.links_shared, verdict.links_shared_percent);
  const bool node = answer.selected.request.topology.kind() == Topology::Kind::node;
  report.text += row<10>("links", node ? "none on a node" : links);
}

}  // namespace torii::tools
