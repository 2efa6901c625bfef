// SPDX-License-Identifier: Apache-2.0
// Checks the structure of plans, which tabulating and the later proofs take for granted.
#include "collectives/proof/verify_structure.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "runtime/topology/routing.hpp"

namespace torii::verification {
namespace {

/// Limits of the numbers in a StreamEnd.
constexpr std::size_t kStreamsMax = kOwn;
constexpr int kMessagesMax = std::numeric_limits<std::uint16_t>::max() + 1;

int largest_bundle(std::span<const Plan> plans) {
  int most = 1;
  for (const Plan& plan : plans) {
    for (const Stream& stream : plan.out) most = std::max(most, stream.bundle);
  }
  return most;
}

}  // namespace

std::string flow_text(int rank, int lane, int flow, std::string_view label) {
  std::string text = "rank " + std::to_string(rank) + " lane " + std::to_string(lane) + " flow " + std::to_string(flow);
  if (!label.empty()) text += " (" + std::string(label) + ")";
  return text;
}

std::string stream_text(int sender, int receiver, int tag) {
  return "stream " + std::to_string(sender) + " -> " + std::to_string(receiver) + " tag " + std::to_string(tag);
}

void check_plan_shapes(const PlanRequest& request, std::span<const Plan> plans, Faults& faults) {
  const int ranks = request.topology.ranks();
  if (static_cast<int>(plans.size()) != ranks) {
    faults.add("the topology has " + std::to_string(ranks) + " ranks but there are " + std::to_string(plans.size()) +
               " plans");
    return;
  }
  const int bundle_most = largest_bundle(plans);
  for (int rank = 0; rank < ranks; ++rank) {
    const Plan& plan = plans[rank];
    const Plan& first = plans[0];
    const auto say = [&](const std::string& what) { faults.add("rank " + std::to_string(rank) + ": " + what); };
    if (plan.rank != rank) say("the plan says it is of rank " + std::to_string(plan.rank));
    if (plan.ranks != ranks)
      say("the plan says there are " + std::to_string(plan.ranks) + " ranks, not " + std::to_string(ranks));
    if (plan.blocks < 1) say("the number of blocks is " + std::to_string(plan.blocks));
    if (plan.blocks != first.blocks || plan.dealing != first.dealing) say("blocks or dealing differ from rank 0");
    if (plan.slots < 1) say("the number of slots is " + std::to_string(plan.slots) + ", at least 1 is needed");
    if (plan.slots != first.slots) say("the number of slots differs from rank 0");
    const std::size_t streams = std::max(plan.in.size(), plan.out.size());
    if (streams > kStreamsMax) {
      say("it has " + std::to_string(streams) + " streams in one direction; numbers of 16 bits tell apart " +
          std::to_string(kStreamsMax));
    }
    if (plan.bundle_max != bundle_most) {
      say("bundle_max is " + std::to_string(plan.bundle_max) + " but the largest bundle of any rank is " +
          std::to_string(bundle_most));
    }
  }
  if (bundle_most > 1 && !has_equal_blocks(request.collective, plans[0].blocks, ranks)) {
    faults.add("the blocks of this " + std::string(name(request.collective)) +
               " may differ in length, so its messages do not travel in bundles");
  }
  if (is_personalised(request.collective) && plans[0].blocks != ranks) {
    faults.add("a plan of " + std::string(name(request.collective)) + " has one block per rank, not " +
               std::to_string(plans[0].blocks) + " blocks");
  }
  if (is_prefix(request.collective) && plans[0].blocks != 1) {
    faults.add("a plan of " + std::string(name(request.collective)) + " has one block, not " +
               std::to_string(plans[0].blocks));
  }
  if (has_block_per_rank(request.collective) && (plans[0].blocks < ranks || plans[0].blocks % ranks != 0)) {
    faults.add("a plan of " + std::string(name(request.collective)) +
               " has one block per rank, or as many parts of each, not " + std::to_string(plans[0].blocks) + " blocks");
  }
}

void check_maxima(std::span<const Plan> plans, Faults& faults) {
  std::size_t in_most = 0;
  std::size_t out_most = 0;
  for (const Plan& plan : plans) {
    in_most = std::max(in_most, plan.in.size());
    out_most = std::max(out_most, plan.out.size());
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = plans[rank];
    const std::string where = "rank " + std::to_string(rank) + ": ";
    if (plan.in_streams_max != static_cast<int>(in_most)) {
      faults.add(where + "in_streams_max is " + std::to_string(plan.in_streams_max) + " but the most of any rank is " +
                 std::to_string(in_most));
    }
    if (plan.out_streams_max != static_cast<int>(out_most)) {
      faults.add(where + "out_streams_max is " + std::to_string(plan.out_streams_max) +
                 " but the most of any rank is " + std::to_string(out_most));
    }
  }
}

void check_flow(const Plan& plan, const Flow& flow, const std::string& where, Faults& faults) {
  const Walk& walk = flow.walk;
  if (walk.count < 1 || walk.modulus < 1) {
    faults.add(where + ": the walk visits " + std::to_string(walk.count) + " blocks modulo " +
               std::to_string(walk.modulus));
    return;
  }
  for (int place = 0; place < walk.count; ++place) {
    if (walk.block(place) >= plan.blocks) {
      faults.add(where + ": the walk leaves the " + std::to_string(plan.blocks) + " blocks at block " +
                 std::to_string(walk.block(place)));
      return;
    }
  }
  for (const StreamEnd& source : flow.sources) {
    if (source.stream == kOwn) continue;
    if (source.stream >= plan.in.size()) {
      faults.add(where + ": source stream " + std::to_string(source.stream) + " does not exist");
      return;
    }
    const Stream& stream = plan.in[source.stream];
    if (stream.delivery == Delivery::write_in_place && (flow.sources.size() != 1 || !flow.keep)) {
      faults.add(where +
                 ": a flow that takes what a peer writes in place has that stream as its only source and keeps it");
    }
  }
  std::size_t read_in_place = 0;
  for (const StreamEnd& target : flow.targets) {
    if (target.stream >= plan.out.size()) {
      faults.add(where + ": target stream " + std::to_string(target.stream) + " does not exist");
      return;
    }
    const Stream& stream = plan.out[target.stream];
    if (stream.delivery == Delivery::read_in_place) {
      ++read_in_place;
      const int operand = stream.operand_of(target.position);
      if (!flow.sources.empty() && operand != flow.sources[0].position) {
        faults.add(where + ": gives operand " + std::to_string(flow.sources[0].position) + " where operand " +
                   std::to_string(operand) + " is read in place");
      }
    }
    if (stream.delivery == Delivery::local && !flow.keep) {
      faults.add(where + ": hands over a result that it does not keep");
    }
  }
  const bool reads_own =
      flow.sources.size() == 1 && flow.sources[0].stream == kOwn && !flow.keep && read_in_place == flow.targets.size();
  if (read_in_place != 0 && !reads_own)
    faults.add(where +
               ": a flow whose operand is read in place has that as its only source, no other targets and no keep");
  if (flow.keep && flow.sources.empty()) faults.add(where + ": keeps a value but has no source");
}

void check_stream(const Stream& stream, int rank, const std::string& where, Faults& faults) {
  if (stream.messages_per_segment < 1)
    faults.add(where + ": " + std::to_string(stream.messages_per_segment) + " messages per segment");
  if (stream.messages_per_segment > kMessagesMax) {
    faults.add(where + ": " + std::to_string(stream.messages_per_segment) +
               " messages per segment; numbers of 16 bits tell apart " + std::to_string(kMessagesMax));
  }
  if (stream.bundle < 1 || stream.messages_per_segment % std::max(stream.bundle, 1) != 0) {
    faults.add(where + ": bundles of " + std::to_string(stream.bundle) + " do not divide " +
               std::to_string(stream.messages_per_segment) + " messages per segment");
  }
  if (stream.bundle > 1 && (stream.delivery != Delivery::through_slots || stream.wide)) {
    faults.add(where + ": only messages through slots, of the vector's own type, travel in bundles");
  }
  if (stream.wide && stream.delivery != Delivery::through_slots)
    faults.add(where + ": only streams through slots may be wide");
  if (stream.delivery == Delivery::local && stream.peer != rank) {
    faults.add(where + ": a local stream joins a rank with itself");
  }
  if (stream.peer == rank &&
      (stream.delivery == Delivery::read_in_place || stream.delivery == Delivery::write_in_place)) {
    faults.add(where + ": a rank reads or writes nothing of its own in place");
  }
}

void check_ties(const Topology& topology, int rank, const Stream& stream, const std::string& where, Faults& faults) {
  if (stream.ties == Ties{} || stream.peer < 0 || stream.peer >= topology.ranks()) return;
  if (!topology.selects_ties()) {
    faults.add(where + ": names a way, but " + topology.text() + " leaves it to the network");
    return;
  }
  const Ties possible = balanced_ties(topology, rank, stream.peer);
  for (std::size_t d = 0; d < 3; ++d) {
    const std::string along = " along dimension " + std::to_string(d);
    if (stream.ties[d] < -1 || stream.ties[d] > 1) {
      faults.add(where + ": the way" + along + " is " + std::to_string(stream.ties[d]) + "; it must be -1, 0 or 1");
    } else if (stream.ties[d] != 0 && possible[d] == 0) {
      faults.add(where + ": names a way" + along + ", where one is shorter than the other");
    }
  }
}

}  // namespace torii::verification
