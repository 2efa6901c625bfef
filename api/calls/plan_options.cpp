// SPDX-License-Identifier: Apache-2.0
// The options of a team that its plans depend on: checks, and what they say where they are empty.
#include "api/calls/plan_maker.hpp"
#include "runtime/topology/rank_map.hpp"

namespace torii {
namespace {

constexpr std::size_t kSegmentBytesMax = std::size_t{1} << 30;  ///< as the setting SEGMENT accepts

ChoiceRules rules_of(const Membership& members, const TeamOptions& options, const RingSizes& rings) {
  ChoiceRules rules;
  rules.rank = members.rank();
  rules.rings = rings;
  Context& context = members.context();
  const Settings& settings = context.settings();
  const std::string& topology = first_set(options.topology, settings.topology);
  if (!options.tree_error.empty()) throw Error(Status::invalid_argument, options.tree_error);
  const bool is_file = options.rank_map == context.rank_map() && !settings.rank_map.starts_with("list:");
  rules.topology =
      with_rank_map(is_tree(topology) ? Topology::parse_tree(topology, options.tree, members.ranks())
                                      : Topology::parse(topology == "auto" ? "node" : topology, members.ranks()),
                    options.rank_map, is_file ? settings.rank_map : "of the settings or options");
  const Capabilities& able = context.transport().capabilities();
  if (rules.topology.selects_ties() && !able.selects_ties) {
    throw Error(Status::invalid_argument, "topology '" + topology + "' leaves the way round to the sender, but " +
                                              std::string(able.name) + " cannot choose it; leave ',ties' out");
  }
  const std::string determinism =
      options.determinism.empty() ? std::string(name(settings.determinism)) : options.determinism;
  const auto level = parse_determinism(determinism);
  if (!level) {
    throw Error(Status::invalid_argument, "determinism is '" + determinism + "'; it must be run or canonical");
  }
  rules.determinism = *level;
  if (!options.wire.empty() && options.wire != "type" && options.wire != "f32") {
    throw Error(Status::invalid_argument, "wire is '" + options.wire + "'; it must be type or f32");
  }
  rules.wide_wire = options.wire.empty() ? settings.wide_wire : options.wire == "f32";
  Forced& forced = rules.forced;
  forced.algorithm = first_set(options.algorithm, settings.algorithm);
  if (forced.algorithm != "auto" && find_algorithm(forced.algorithm) == nullptr) {
    std::string names = "auto";
    for (const Algorithm& algorithm : catalogue()) names += ", " + std::string(algorithm.name);
    throw Error(Status::invalid_argument, "algorithm is '" + forced.algorithm + "'; it must be one of " + names);
  }
  forced.segment_bytes = options.segment_bytes != 0 ? options.segment_bytes : settings.segment_bytes;
  if (forced.segment_bytes % 64 != 0 || forced.segment_bytes > kSegmentBytesMax) {
    throw Error(Status::invalid_argument, "segment is " + std::to_string(forced.segment_bytes) +
                                              " bytes; it must be a multiple of 64, at most " +
                                              std::to_string(kSegmentBytesMax));
  }
  if (!options.tune_table.empty()) rules.own_tune_table = context.team_table(options.tune_table);
  forced.slots = settings.slots;
  forced.window = settings.window;
  return rules;
}

}  // namespace

PlanMaker::PlanMaker(const Membership& members, const TeamOptions& options, const RingSizes& rings)
    : members_(members),
      known_(members.context().known_classes(rules_of(members, options, rings))),
      rules_(known_->rules()) {}

}  // namespace torii
