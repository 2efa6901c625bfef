// SPDX-License-Identifier: Apache-2.0
// One call of a user: what it asks for, and its text in messages.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "reduce_kernels/kernels.hpp"
#include "runtime/plan/call.hpp"
#include "runtime/plan/leaves.hpp"
#include "runtime/plan/operation.hpp"

namespace torii {

/// The caller's function for leaves that come one by one: writes the vector of a leaf to `out`, and returns 0 if it
/// could.
struct LeafFunction {
  int (*write)(std::size_t leaf, void* out, void* data) = nullptr;
  void* data = nullptr;
};

/// One call as the user wrote it. `user` may point to a temporary: submit() copies it.
struct CallArguments {
  Collective collective = Collective::barrier;
  const void* input = nullptr;
  void* result = nullptr;
  std::size_t count = 0;
  Type type = Type::u8;
  Op op = Op::sum;
  bool multiplies = false;  ///< with Op::sum: the input is multiplied by `factor`, an element, before the call
  std::array<std::byte, 16> factor = {};
  bool averages = false;  ///< with Op::sum: every element of the sum is divided by the number of ranks
  int root = 0;
  kernels::UserFunction user;
  bool commutes = true;           ///< false, with Op::user only: operands are combined in the order of ranks
  bool is_internal = false;       ///< the library's own call: a forced algorithm need not be able to serve it
  std::uint32_t tag = 0;          ///< set by the library's own calls: calls with different tags are different calls
  bool told_over_leaves = false;  ///< of another rank's call, whose leaves are not known here
  bool is_packed = false;         ///< several calls of a group as one; `tag` is then a hash of their lengths
  bool unequal = false;           ///< blocks have lengths of their own; the arrays are read once, by read_blocks()
  const std::size_t* input_counts = nullptr;
  const std::size_t* input_displacements = nullptr;
  const std::size_t* result_counts = nullptr;
  const std::size_t* result_displacements = nullptr;
  /// Addresses of the unequal blocks, in place of `input` and `result` with displacements. Without counts every block
  /// has `count` elements.
  const void* const* input_blocks = nullptr;
  void* const* result_blocks = nullptr;
  /// reduce_scatter with blocks of unequal lengths: that of each rank's block, equal on all ranks; `count` is their
  /// sum.
  const std::size_t* block_counts = nullptr;
  /// The operands are those of leaves (torii/leaves.h); Team::agree_on_leaves() has them. nullptr: each rank has one.
  const LeafIntervals* leaves = nullptr;
  std::size_t leaf_stride = 0;  ///< elements from one leaf in `input` to the next
  LeafFunction leaf = {};       ///< writes the leaves; `input` is then not looked at
  std::int64_t timeout_ns = 0;  ///< how long it may wait without progress; 0: the team's. Equal calls may differ in it
  Access access = {};           ///< broadcast: with functions, they move the vector, and `result` is not looked at
};

/// Collectives whose blocks may have lengths of their own. A reduce_scatter runs the plan for equal blocks over another
/// layout, since all ranks know all lengths. So does a scatter or gather by a plan of flows, once the root has told the
/// others the lengths. The other collectives run as pairwise exchanges: an all_gather as an alltoall that has the same
/// block for all ranks.
constexpr bool may_be_unequal(Collective collective) {
  return is_personalised(collective) || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}

/// The numbers of operations in the C interface and in call records: those of Op, then those that are a sum and more.
inline constexpr int kAverageNumber = kOpCount;
inline constexpr int kProductsNumber = kOpCount + 1;
inline int op_number(const CallArguments& arguments) noexcept {
  if (arguments.multiplies) return kProductsNumber;
  return arguments.averages ? kAverageNumber : static_cast<int>(arguments.op);
}
inline void set_op(CallArguments& arguments, int number) noexcept {
  arguments.averages = number == kAverageNumber;
  arguments.multiplies = number == kProductsNumber;
  arguments.op = arguments.averages || arguments.multiplies ? Op::sum : static_cast<Op>(number);
}
inline const char* op_name(int number) noexcept {
  if (number == kProductsNumber) return "premul_sum";
  return number == kAverageNumber ? "avg" : name(static_cast<Op>(number));
}

/// By the operation, not by the function: that of another rank is not known.
inline bool combines_by_user(const CallArguments& arguments) noexcept {
  return combines(arguments.collective) && arguments.op == Op::user;
}

/// The count in the call records for a call whose blocks have lengths of their own.
inline constexpr std::uint64_t kUnequalInRecord = UINT64_MAX;
inline std::uint64_t count_on_record(const CallArguments& arguments) noexcept {
  return arguments.unequal || arguments.block_counts != nullptr ? kUnequalInRecord : arguments.count;
}

/// True when calls of a team of `ranks` ranks differ in their buffers only.
inline bool same_call(const CallArguments& a, const CallArguments& b, int ranks) noexcept {
  return a.collective == b.collective && a.unequal == b.unequal && (a.unequal || a.count == b.count) &&
         a.type == b.type && a.op == b.op && a.averages == b.averages && a.multiplies == b.multiplies &&
         a.root == b.root && a.user.call == b.user.call && a.user.data == b.user.data &&
         a.user.element_bytes == b.user.element_bytes && a.commutes == b.commutes && a.is_internal == b.is_internal &&
         (a.block_counts == nullptr) == (b.block_counts == nullptr) && a.tag == b.tag && a.leaves == b.leaves &&
         (a.block_counts == nullptr || std::equal(a.block_counts, a.block_counts + ranks, b.block_counts));
}

/// Added to the collective in CallKey::collective: for a call over leaves of which each rank has one, and for a
/// pairwise exchange of unequal blocks.
inline constexpr int kOneLeafEach = 1 << 30;
inline constexpr int kOfUnequalBlocks = 1 << 29;

/// Whether a deadline may have so many seconds. 0 stands for another deadline.
inline bool is_timeout(double seconds) noexcept { return seconds >= 0 && seconds <= 1e6; }
inline std::int64_t timeout_ns_of(double seconds) noexcept { return static_cast<std::int64_t>(seconds * 1e9); }
/// The fault of a number of seconds that is no deadline, as text.
std::string timeout_text(double seconds, const std::string& otherwise);

/// "allreduce of 4 x f32, op sum".
std::string call_text(const CallArguments& arguments);

}  // namespace torii
