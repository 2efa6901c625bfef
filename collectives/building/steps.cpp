// SPDX-License-Identifier: Apache-2.0
// From verbs to streams and flows.
#include "collectives/building/steps.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "runtime/base/log.hpp"

namespace torii {

Steps::Steps(const PlanRequest& request, int rank, int blocks)
    : has_data_(request.collective != Collective::barrier),
      blocks_(blocks),
      builder_(request, rank, Dealing::block, blocks) {
  lane();
}

void Steps::lane() {
  finish_step();
  writer_.emplace(builder_.lane(), blocks_);
}

Steps& Steps::begin(std::string_view label, int block) {
  finish_step();
  step_.label = label;
  block_ = block;
  return *this;
}

Steps& Steps::canonical() {
  step_.fold = Fold::canonical;
  return *this;
}

Steps& Steps::combine(StreamEnd value) {
  if (has_data_ || value != own()) step_.sources.push_back(value);
  return *this;
}

Steps& Steps::combine(const Link& from) {
  step_.sources.push_back(end_of(from, in_, true));
  return *this;
}

Steps& Steps::combine(const Held& from) {
  OpenHeld& held = opened(from);
  step_.sources.push_back(at(held.onward.source, position_in(from.blocks, held.next_combined)));
  return *this;
}

Steps& Steps::hold(const Held& to) {
  OpenHeld& held = opened(to);
  step_.targets.push_back(at(held.onward.target, position_in(to.blocks, held.next_held)));
  step_.keep = step_.keep || held.onward.keep;
  return *this;
}

Steps& Steps::keep() {
  step_.keep = has_data_;
  return *this;
}

Steps& Steps::send(const Link& to) {
  step_.targets.push_back(end_of(to, out_, false));
  return *this;
}

StreamEnd Steps::hold(int tag) {
  const bool is_operand = step_.sources.size() == 1 && step_.sources.front() == own();
  if (!has_data_ || is_operand) return own();
  const PlanBuilder::Onward onward = builder_.onward(tag, 1);
  step_.targets.push_back(onward.target);
  step_.keep = step_.keep || onward.keep;
  return onward.source;
}

StreamEnd Steps::hold(const Link& through) {
  send(through);
  return end_of(through, in_, true);
}

Plan Steps::take() {
  finish_step();
  Plan plan = builder_.take();
  plan.in_streams_max = static_cast<int>(plan.in.size());
  plan.out_streams_max = static_cast<int>(plan.out.size());
  return plan;
}

Steps::Opened& Steps::opened(const Link& link, OpenStreams& streams, bool is_in) {
  Stream stream = link.stream;
  const auto [found, is_new] = streams.try_emplace({stream.peer, stream.tag});
  if (is_new) {
    stream.messages_per_segment = static_cast<int>(link.blocks.size());
    found->second.end = is_in ? builder_.in(stream) : builder_.out(stream);
  }
  return found->second;
}

StreamEnd Steps::end_of(const Link& link, OpenStreams& streams, bool is_in) {
  Opened& stream = opened(link, streams, is_in);
  return at(stream.end, position_in(link.blocks, stream.next));
}

Steps::OpenHeld& Steps::opened(const Held& held) {
  const auto [found, is_new] = held_.try_emplace(held.tag);
  if (is_new) found->second.onward = builder_.onward(held.tag, static_cast<int>(held.blocks.size()));
  return found->second;
}

/// The place of the step's block among `blocks`; the search begins at `next`.
int Steps::position_in(std::span<const int> blocks, std::size_t& next) const {
  for (std::size_t tried = 0; tried < blocks.size(); ++tried) {
    const std::size_t position = (next + tried) % blocks.size();
    if (blocks[position] != block_) continue;
    next = position + 1;
    return static_cast<int>(position);
  }
  log(LogLevel::error, "the plan of rank " + std::to_string(builder_.rank()) + " is wrong: its step \"" +
                           std::string(step_.label) + "\" moves block " + std::to_string(block_) +
                           " by a stream that does not carry it");
  std::abort();
}

void Steps::finish_step() {
  Flow step = std::exchange(step_, {});
  const bool reads_only = step.targets.empty() && !step.keep &&
                          std::ranges::count(step.sources, own()) == static_cast<std::ptrdiff_t>(step.sources.size());
  if (!reads_only) writer_->add(block_, std::move(step));
}

}  // namespace torii
