// SPDX-License-Identifier: Apache-2.0
// Sends the messages of all ranks' plans along the routes of the network.
#include "tools/torii-lab/prediction.hpp"

#include <algorithm>
#include <string_view>

#include "collectives/selection/selection.hpp"
#include "runtime/base/numbers.hpp"
#include "runtime/base/split.hpp"
#include "runtime/base/status.hpp"
#include "runtime/fabric/words.hpp"
#include "runtime/plan/layout.hpp"
#include "runtime/topology/routing.hpp"

namespace torii::tools {
namespace {

/// By the number of a link.
using LinkBytes = std::vector<std::uint64_t>;

struct Question {
  Collective collective = Collective::allreduce;
  std::string algorithm;
  std::size_t bytes = 0;
};

Question parse_question(const std::string& what) {
  const auto refuse = [&](const std::string& why) -> Error {
    return {Status::invalid_argument,
            "plan '" + what + "': " + why + "; write COLLECTIVE:ALGORITHM:BYTES, as in allreduce:bucket:4M"};
  };
  const std::vector<std::string_view> parts = split(what, ':');
  if (parts.size() != 3) throw refuse("it does not have two colons");
  Question question;
  const std::string collective(parts[0]);
  const Collective served[] = {Collective::allreduce, Collective::broadcast, Collective::reduce};
  const auto found = std::ranges::find_if(served, [&](Collective one) { return name(one) == collective; });
  if (found == std::end(served)) throw refuse("'" + collective + "' is none of allreduce, broadcast, reduce");
  question.collective = *found;
  question.algorithm = parts[1];
  if (question.algorithm != "auto" && find_algorithm(question.algorithm) == nullptr) {
    throw refuse("no algorithm is called '" + question.algorithm + "'");
  }
  question.bytes = parse_bytes(parts[2]).value_or(0);
  if (question.bytes == 0) throw refuse("'" + std::string(parts[2]) + "' is no number of bytes");
  return question;
}

/// Half the bytes take the way of each turn: torii gives every second engine the node's other address. If there is only
/// one way, it takes all.
void add_ways(const Topology& topology, int from, int to, std::uint64_t bytes, LinkBytes& links) {
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<LinkId> way;
    append_route(topology, from, to, turn, way);
    for (const LinkId link : way) links[static_cast<std::size_t>(link)] += turn == 0 ? bytes - bytes / 2 : bytes / 2;
  }
}

/// Adds the payload that one rank sends.
void add_messages(const Plan& plan, const Topology& topology, const Layout& layout, LinkBytes& links) {
  for (const Lane& lane : plan.lanes) {
    for (const Flow& flow : lane.flows) {
      if (flow.sources.empty()) continue;  // tokens
      std::uint64_t bytes = 0;
      for (int visit = 0; visit < flow.walk.count; ++visit) {
        for (std::int64_t segment = 0; segment < layout.segments(); ++segment) {
          bytes += layout.segment_length_bytes(flow.walk.block(visit), segment);
        }
      }
      for (const StreamEnd& end : flow.targets) {
        const Stream& stream = plan.out[end.stream];
        if (stream.delivery != Delivery::local) add_ways(topology, plan.rank, stream.peer, bytes, links);
      }
    }
  }
}

/// The names that torus_network() uses.
LinkId link_of(int node, const std::string& device) {
  return link_id(node, device[0] - 'x', device[1] == 'p' ? 1 : -1);
}

}  // namespace

LabPrediction predict(const LabNetwork& network, const std::string& what) {
  if (network.topology.empty() || network.nodes[0].switching) {
    throw Error(Status::invalid_argument, "a plan's links are those of a torus or mesh; " + network.text + " is none");
  }
  const Question question = parse_question(what);
  PlanRequest request;
  request.collective = question.collective;
  request.topology = Topology::parse(network.topology, network.ranks);
  const Selected selected =
      select(TuneTable::built_in(), {.algorithm = question.algorithm}, request, question.bytes, true);
  LinkBytes links(static_cast<std::size_t>(link_numbers(request.topology)));
  for (int rank = 0; rank < network.ranks; ++rank) {
    const Plan plan = selected.algorithm->plan(selected.request, rank);
    const Layout layout(plan.dealing, question.bytes, plan.blocks, selected.request.tuning.segment_bytes);
    add_messages(plan, request.topology, layout, links);
  }
  LabPrediction prediction;
  prediction.text = std::string(name(question.collective)) + " of " + std::to_string(question.bytes) + " bytes by " +
                    std::string(selected.algorithm->name);
  for (std::size_t node = 0; node < network.nodes.size(); ++node) {
    prediction.bytes.emplace_back();
    for (const LabDevice& device : network.nodes[node].devices) {
      const LinkId link = link_of(static_cast<int>(node), device.name);
      prediction.bytes.back().push_back(links[static_cast<std::size_t>(link)]);
    }
  }
  return prediction;
}

}  // namespace torii::tools
