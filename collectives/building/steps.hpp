// SPDX-License-Identifier: Apache-2.0
// One rank's plan written as a paper's figure reads: combine what came, keep it, send it on.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "collectives/building/plan_builder.hpp"

namespace torii {

inline constexpr int kFirstBlock[] = {0};

/// A stream as both ends name it, with the blocks that cross it in every segment, in the order of their messages.
/// `stream.messages_per_segment` is derived. The blocks must live as long as the Steps.
struct Link {
  Stream stream;
  std::span<const int> blocks = kFirstBlock;
};

/// Values that wait within this rank for a later step, with their blocks as in a Link. They are in the result if
/// PlanBuilder::onward() allows it.
struct Held {
  int tag = 0;
  std::span<const int> blocks = kFirstBlock;
};

/// Builds a plan step by step. begin() opens a step over one block; the verbs after it add to that step.
///
/// A stream is opened where a verb first names its link; a link is known by its peer, its tag and its direction. The
/// place of a block among the link's blocks is the position of its message, so steps may come in any order. Even steps
/// become one flow (StepWriter), and a step that only reads the operand is left out. A barrier has no operands: there
/// combine(own()), keep() and hold() do nothing.
class Steps {
 public:
  Steps(const PlanRequest& request, int rank, int blocks);

  /// Streams that are opened from now on name balanced_ties().
  void balance_ties() { builder_.balance_ties(); }
  /// The steps that follow are in a lane of their own.
  void lane();

  Steps& begin(std::string_view label, int block = 0);
  /// The step combines by the canonical expression, not from the left.
  Steps& canonical();
  /// Combines in the order of the calls. `value` is own() or what hold() returned.
  Steps& combine(StreamEnd value);
  Steps& combine(const Link& from);
  Steps& combine(const Held& from);
  /// The value of the step is the result for its block.
  Steps& keep();
  Steps& send(const Link& to);
  Steps& hold(const Held& to);
  /// Hands the value of the step to a later step of this rank, in the result if it may be there
  /// (PlanBuilder::onward()). An operand that was not combined stays where it is.
  StreamEnd hold(int tag);

  /// The same through the slots of a stream from this rank to itself.
  StreamEnd hold(const Link& through);

  /// Opens a stream before a verb names its link: the order of opening numbers the streams of a plan.
  void open_in(const Link& link) { opened(link, in_, true); }
  void open_out(const Link& link) { opened(link, out_, false); }
  void open(const Held& held) { opened(held); }

  static StreamEnd own() { return {}; }

  /// The plan. The maxima are those of this rank.
  Plan take();

 private:
  struct Opened {
    StreamEnd end;
    std::size_t next = 0;  ///< the search for a block begins here: most blocks come in the order of the link
  };
  using OpenStreams = std::map<std::pair<int, int>, Opened>;  // by peer and tag
  Opened& opened(const Link& link, OpenStreams& streams, bool is_in);
  StreamEnd end_of(const Link& link, OpenStreams& streams, bool is_in);
  struct OpenHeld {
    PlanBuilder::Onward onward;
    std::size_t next_held = 0;
    std::size_t next_combined = 0;
  };
  OpenHeld& opened(const Held& held);
  int position_in(std::span<const int> blocks, std::size_t& next) const;
  void finish_step();

  const bool has_data_;
  const int blocks_;
  PlanBuilder builder_;
  std::optional<StepWriter> writer_;
  Flow step_;
  int block_ = 0;
  OpenStreams in_;
  OpenStreams out_;
  std::map<int, OpenHeld> held_;  ///< by tag
};

}  // namespace torii
