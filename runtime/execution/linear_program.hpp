// SPDX-License-Identifier: Apache-2.0
// A plan of one lane and one segment as a linear program, a list of steps: short vectors run it. All that does not
// change from call to call (offsets, lengths, entries) is computed once per length and channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/execution/installed_plan.hpp"
#include "runtime/plan/layout.hpp"

namespace torii {

/// One source of a step.
struct LinearSource {
  bool own = false;                    ///< the rank's own operand; the rest is unused then
  bool releases = false;               ///< the entry is empty after this step
  bool is_outside = false;             ///< the payload is in the sender's outbox
  std::uint32_t position = 0;          ///< of this step's message, or of its bundle, in the call
  const std::byte* payload = nullptr;  ///< of the message in the first entry
  std::size_t bundle_bytes = 0;        ///< of the whole bundle
  std::size_t before_bytes = 0;        ///< of the bundle's messages before this one
  ReceiveRing ring;
};

/// One target of a step.
struct LinearTarget {
  bool signals = true;              ///< the entry is full after this step
  bool stores = true;               ///< false if an earlier stream of its group holds the payload
  bool is_outside = false;          ///< the payload is in this rank's outbox
  std::uint32_t position = 0;       ///< as of a source
  std::byte* payload = nullptr;     ///< of the message in the first entry
  std::size_t bundle_bytes = 0;     ///< as of a source
  std::size_t before_bytes = 0;     ///< likewise
  std::size_t signalled_bytes = 0;  ///< that the signal announces: the whole bundle; 0 without payload
  SendRing ring;
};

struct LinearStep {
  std::span<const LinearSource> sources;
  std::span<const LinearTarget> targets;
  std::uint32_t flow = 0;  ///< index into InstalledPlan::stores
  bool keep = false;
  bool may_stream = false;  ///< long enough, and stored into peers' arenas: non-temporal stores are possible
  Fold fold = Fold::left;
  std::size_t offset_bytes = 0;  ///< of the block in the vector
  std::size_t length_bytes = 0;
};

struct LinearProgram {
  LinearProgram() = default;
  LinearProgram(const LinearProgram&) = delete;  // steps point to its ends
  LinearProgram& operator=(const LinearProgram&) = delete;

  // For which it was made; lengths alone change within these.
  const InstalledPlan* plan = nullptr;
  EntryKind kind = EntryKind::line;
  std::vector<LinearStep> steps;
  const LinearStep* steps_end = nullptr;
  std::uint32_t places = 0;           ///< no step has more sources, or more targets with the result
  std::vector<LinearSource> sources;  ///< of all steps, one after the other
  std::vector<LinearTarget> targets;
};

/// Whether calls of this layout run by a linear program. They do only if the plan has one lane, the layout one segment,
/// and all streams travel by value in the vector's own type.
bool has_linear(const InstalledPlan& plan, const Layout& layout) noexcept;
/// Writes the linear program of `plan` for one layout, which has one. In a program of the same plan it takes no memory,
/// and writes lengths alone if messages stay in entries of one kind. The plan must live as long as the program.
void compile_linear(const InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes, std::size_t element_bytes,
                    LinearProgram& program);
/// A new one, or nullptr if there is none.
std::unique_ptr<LinearProgram> compile_linear(const InstalledPlan& plan, const Layout& layout, std::size_t unit_bytes,
                                              std::size_t element_bytes);

}  // namespace torii
