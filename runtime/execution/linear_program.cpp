// SPDX-License-Identifier: Apache-2.0
// Makes linear programs.
#include "runtime/execution/linear_program.hpp"

#include <algorithm>

#include "runtime/fabric/words.hpp"
#include "runtime/plan/shortcuts.hpp"

namespace torii {
namespace {

/// Where a step's message is, behind the others of its bundle.
template <class End>
void set_payload(End& end, const Stream& stream, int position, std::size_t length_bytes) noexcept {
  const auto bundle = static_cast<std::size_t>(stream.bundle);
  end.bundle_bytes = length_bytes * bundle;
  end.before_bytes = static_cast<std::size_t>(position) % bundle * length_bytes;
  end.payload = end.ring.first_payload(end.bundle_bytes) + end.before_bytes;
  end.is_outside = !end.ring.remote() && !Ring::is_inline(end.bundle_bytes);
}

/// All but what depends on the length.
LinearSource linear_source(const InstalledPlan& plan, const StreamEnd& end, int visit, EntryKind kind) {
  LinearSource source;
  source.own = end.stream == kOwn;
  if (source.own) return source;
  const InstalledIn& in = plan.in[end.stream];
  const int position = end.position + visit;
  source.releases = in.stream.ends_bundle(position);
  source.position = static_cast<std::uint32_t>(position / in.stream.bundle);
  source.ring = in.ring;
  source.ring.use(kind);
  return source;
}

/// All but what depends on the length.
LinearTarget linear_target(const InstalledPlan& plan, const StreamEnd& end, int visit, EntryKind kind) {
  LinearTarget target;
  const InstalledOut& out = plan.out[end.stream];
  const int position = end.position + visit;
  target.signals = out.stream.ends_bundle(position);
  target.position = static_cast<std::uint32_t>(position / out.stream.bundle);
  target.ring = out.ring;
  target.ring.place().engines.balancer = nullptr;  // a call has too few messages to share
  target.ring.use(kind);
  return target;
}

void set_length(const InstalledPlan& plan, const Flow& flow, int visit, LinearStep& step, LinearSource* source,
                LinearTarget* target) {
  for (const StreamEnd& end : flow.sources) {
    if (!source->own) {
      const Stream& stream = plan.in[end.stream].stream;
      set_payload(*source, stream, end.position + visit, step.length_bytes);
      source->is_outside = source->is_outside && (flow.keep || !flow.targets.empty());
    }
    ++source;
  }
  step.may_stream = false;
  for (const StreamEnd& end : flow.targets) {
    const Stream& stream = plan.out[end.stream].stream;
    const std::size_t bundle_bytes = step.length_bytes * static_cast<std::size_t>(stream.bundle);
    target->stores = target->ring.stores(bundle_bytes);
    set_payload(*target, stream, end.position + visit, step.length_bytes);
    target->is_outside = target->is_outside || target->ring.remote();
    target->signalled_bytes = flow.sources.empty() ? 0 : bundle_bytes;
    step.may_stream = step.may_stream || (!target->ring.remote() && step.length_bytes >= StoreChoice::kBytesMin);
    ++target;
  }
}

void reserve(LinearProgram& program, const Lane& lane) {
  std::size_t steps = 0;
  std::size_t sources = 0;
  std::size_t targets = 0;
  for (const Flow& flow : lane.flows) {
    const auto visits = static_cast<std::size_t>(flow.walk.count);
    steps += visits;
    sources += visits * flow.sources.size();
    targets += visits * flow.targets.size();
  }
  program.steps.clear();
  program.sources.clear();
  program.targets.clear();
  program.steps.reserve(steps);
  program.sources.reserve(sources);
  program.targets.reserve(targets);
}

/// Writes all but what depends on lengths.
void begin(LinearProgram& program, const InstalledPlan& plan, EntryKind kind) {
  const Lane& lane = plan.plan.lanes[0];
  program.plan = nullptr;  // until it is whole
  program.places = 0;
  reserve(program, lane);
  for (const Flow& flow : lane.flows) {
    for (int visit = 0; visit < flow.walk.count; ++visit) {
      LinearStep& step = program.steps.emplace_back();
      step.flow = static_cast<std::uint32_t>(&flow - lane.flows.data());
      step.keep = flow.keep;
      step.fold = flow.fold;
      const std::size_t first_source = program.sources.size();
      const std::size_t first_target = program.targets.size();
      for (const StreamEnd& end : flow.sources) program.sources.push_back(linear_source(plan, end, visit, kind));
      for (const StreamEnd& end : flow.targets) program.targets.push_back(linear_target(plan, end, visit, kind));
      step.sources = std::span(program.sources).subspan(first_source);
      step.targets = std::span(program.targets).subspan(first_target);
      const std::size_t places = std::max(step.sources.size(), step.targets.size() + (step.keep ? 1 : 0));
      program.places = std::max(program.places, static_cast<std::uint32_t>(places));
    }
  }
}

}  // namespace

bool has_linear(const InstalledPlan& plan, const Layout& layout) noexcept {
  return layout.segments() == 1 && runs_as_list(plan.plan);
}

std::unique_ptr<LinearProgram> compile_linear(const InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes,
                                              std::size_t element_bytes) {
  if (!has_linear(plan, layout)) return nullptr;
  auto program = std::make_unique<LinearProgram>();
  compile_linear(plan, layout, unit_bytes, element_bytes, *program);
  return program;
}

void compile_linear(const InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes, std::size_t element_bytes,
                    LinearProgram& program) {
  const EntryKind kind = entry_kind_of(plan.has_cells, layout);
  if (program.plan != &plan || program.kind != kind) {
    begin(program, plan, kind);
    program.plan = &plan;
    program.kind = kind;
    program.steps_end = program.steps.data() + program.steps.size();
  }
  LinearStep* step = program.steps.data();
  LinearSource* source = program.sources.data();
  LinearTarget* target = program.targets.data();
  for (const Flow& flow : plan.plan.lanes[0].flows) {
    for (int visit = 0; visit < flow.walk.count; ++visit) {
      const Piece piece = layout.even_piece(flow.walk.block(visit), 0);
      step->offset_bytes = piece.offset_bytes / unit_bytes * element_bytes;
      step->length_bytes = piece.length_bytes / unit_bytes * element_bytes;
      set_length(plan, flow, visit, *step++, source, target);
      source += flow.sources.size();
      target += flow.targets.size();
    }
  }
}

}  // namespace torii
