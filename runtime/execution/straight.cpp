// SPDX-License-Identifier: Apache-2.0
// Works out straight lists.
#include "runtime/execution/straight.hpp"

#include <algorithm>

#include "runtime/execution/words.hpp"

namespace torii {
namespace {

bool by_value(const std::vector<InstalledStream>& streams) {
  return std::ranges::all_of(streams, [](const InstalledStream& installed) {
    return installed.stream.carriage == Carriage::slots && !installed.stream.wide;
  });
}

StraightEnd straight_end(const std::vector<InstalledStream>& streams, const StreamEnd& end, int visit,
                         std::size_t length_bytes, const StagingShape& shape, const Cells& cells) {
  StraightEnd straight;
  if (end.stream == kOwn) {
    straight.own = true;
    return straight;
  }
  const InstalledStream& installed = streams[end.stream];
  straight.credits = installed.stream.credits;
  const int position = end.position + visit;
  const Stream& stream = installed.stream;
  straight.messages = static_cast<std::uint32_t>(stream.bundles_per_segment());
  straight.position = static_cast<std::uint32_t>(position / stream.bundle);
  straight.bundle = static_cast<std::uint32_t>(stream.bundle);
  straight.ends_bundle = stream.ends_bundle(position);
  straight.bundle_offset =
      static_cast<std::uint32_t>(static_cast<std::size_t>(position % stream.bundle) * length_bytes);
  const bool is_inline = length_bytes * straight.bundle <= kInlineBytes;
  const std::size_t first_offset = is_inline ? sizeof(std::uint64_t) : kLineBytes;
  straight.payload_offset = static_cast<std::uint32_t>(first_offset) + straight.bundle_offset;
  straight.peer = installed.peer;
  straight.stores = is_inline || installed.leader < 0 || installed.leader == static_cast<int>(end.stream);
  const bool in_cell = cells.bytes != 0 && !installed.remote;
  const std::size_t first_cell = in_cell ? cells.offset : 0;
  straight.stride = in_cell ? cells.bytes : shape.slot_bytes;
  straight.slots = installed.slots + first_cell;
  straight.payload_slots = is_inline ? straight.slots : installed.payload_slots;
  straight.slots_offset = installed.slots_offset + first_cell;
  straight.credit_words = installed.credits;
  straight.credits_offset = installed.credits_offset;
  straight.remote = installed.remote;
  straight.stream = end.stream;
  straight.credit_group = static_cast<std::uint32_t>(installed.credit_group);
  return straight;
}

/// Towards a peer whose arena is addressed words are stored as they are, and so arrive in order.
void set_direct(StraightEnd& end, Transport& transport) {
  if (!end.own && !end.remote) end.sleeping = transport.sleeping(end.peer);
}

}  // namespace

std::unique_ptr<Straight> straighten(InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes,
                                     std::size_t element_bytes, Transport& transport) {
  if (plan.plan.sweep.exists() || plan.plan.lanes.size() != 1 || layout.segments() != 1) return nullptr;
  if (plan.plan.dealing == Dealing::dealt && plan.plan.blocks > 1) return nullptr;
  if (!by_value(plan.in) || !by_value(plan.out)) return nullptr;
  auto straight = std::make_unique<Straight>();
  const Cells cells = cells_of(plan.shape, layout);
  for (const Flow& flow : plan.plan.lanes[0].flows) {
    for (int visit = 0; visit < flow.walk.count; ++visit) {
      const Piece piece = layout.even_piece(flow.walk.block(visit), 0);
      StraightStep step;
      step.offset_bytes = piece.offset_bytes / unit_bytes * element_bytes;
      step.length_bytes = piece.length_bytes / unit_bytes * element_bytes;
      step.flow = static_cast<std::uint32_t>(&flow - plan.plan.lanes[0].flows.data());
      step.keep = flow.keep;
      step.fold = flow.fold;
      step.first_source = static_cast<std::uint32_t>(straight->sources.size());
      step.first_target = static_cast<std::uint32_t>(straight->targets.size());
      step.source_count = static_cast<std::uint32_t>(flow.sources.size());
      step.target_count = static_cast<std::uint32_t>(flow.targets.size());
      for (const StreamEnd& end : flow.sources) {
        StraightEnd& source =
            straight->sources.emplace_back(straight_end(plan.in, end, visit, step.length_bytes, plan.shape, cells));
        set_direct(source, transport);
        if (source.sleeping != nullptr) source.credit_words = transport.mapped(source.peer, source.credits_offset);
      }
      for (const StreamEnd& end : flow.targets) {
        StraightEnd& target =
            straight->targets.emplace_back(straight_end(plan.out, end, visit, step.length_bytes, plan.shape, cells));
        set_direct(target, transport);
        if (target.sleeping != nullptr) target.free_until = &plan.out[end.stream].free_until;
        target.claims = target.sleeping != nullptr && cells.bytes == 0;
        step.may_stream = step.may_stream || (!target.remote && step.length_bytes >= StoreChoice::kBytesMin);
      }
      straight->steps.push_back(step);
    }
  }
  return straight;
}

}  // namespace torii
