// SPDX-License-Identifier: Apache-2.0
// The part of a call that is equal on all ranks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "reduce_kernels/types.hpp"
#include "runtime/plan/operation.hpp"

namespace torii {

/// The numbers of operations in the C interface and in call records: those of Op, then those that are a sum and more.
enum class OpNumber : std::uint8_t { sum = 0, user = static_cast<std::uint8_t>(Op::user), average, premul_sum };

/// Bits of CallSpec::marks.
enum class CallMark : std::uint8_t {
  internal = 1,        ///< the library's own call: a forced algorithm need not be able to serve it
  packed = 2,          ///< several calls of a group as one; the tag is a hash of their lengths
  unequal = 4,         ///< blocks have lengths of their own, of which each rank knows some
  block_counts = 8,    ///< blocks have lengths of their own, which all ranks know: those of a reduce_scatter
  leaves = 16,         ///< the operands are those of leaves (torii/leaves.h)
  one_leaf_each = 32,  ///< with `leaves`: no rank has to fold its own
  ordered = 64         ///< with OpNumber::user: operands are combined in the order of ranks
};

/// Calls of a team with equal specs have equal plans. Fields that the collective does not read are zero (spec_of()).
/// A new field has to be handled by signature_of(), PlanMaker::key_of() and call_text(), which name all fields.
struct CallSpec {
  Collective collective = Collective::barrier;
  Type type = Type::u8;  ///< u8 with a user's operation
  OpNumber op = OpNumber::sum;
  std::uint8_t marks = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;       ///< elements; 0 where only some ranks know the lengths of blocks
  std::uint32_t user_bytes = 0;  ///< of an element of a user's type; 0 with other operations
  std::uint32_t tag = 0;         ///< of the library's own calls: calls with different tags are different calls
  std::uint64_t content = 0;     ///< a hash of the block counts, or the digest of the leaves

  bool operator==(const CallSpec&) const = default;
  constexpr bool has(CallMark mark) const noexcept { return (marks & static_cast<std::uint8_t>(mark)) != 0; }
  void set(CallMark mark) noexcept { marks |= static_cast<std::uint8_t>(mark); }
};
static_assert(sizeof(CallSpec) == 32 && std::has_unique_object_representations_v<CallSpec>);

/// Whether the operation of a collective that combines is a user's. By the spec, since another rank's function is not
/// known.
constexpr bool combines_by_user(const CallSpec& spec) noexcept {
  return combines(spec.collective) && spec.op == OpNumber::user;
}
constexpr bool averages(const CallSpec& spec) noexcept { return spec.op == OpNumber::average; }
constexpr bool multiplies(const CallSpec& spec) noexcept { return spec.op == OpNumber::premul_sum; }
/// The operation by which elements are combined; averages and sums of products are sums.
constexpr Op op_of(const CallSpec& spec) noexcept {
  return spec.op > OpNumber::user ? Op::sum : Op{static_cast<std::uint8_t>(spec.op)};
}
constexpr OpNumber number_of(Op op) noexcept { return OpNumber{static_cast<std::uint8_t>(op)}; }
inline const char* name(OpNumber op) noexcept {
  if (op == OpNumber::premul_sum) return "premul_sum";
  return op == OpNumber::average ? "avg" : name(Op{static_cast<std::uint8_t>(op)});
}

/// The fields of a spec that a collective reads, as masks. Without branches, since most calls pass here.
struct ReadFields {
  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t type = 0;
  std::uint8_t op = 0;
};
constexpr ReadFields read_fields(Collective collective) noexcept {
  if (collective == Collective::barrier) return {};
  ReadFields read = {.count = UINT64_MAX, .type = UINT8_MAX};
  if (has_root(collective)) read.root = -1;
  if (combines(collective)) read.op = UINT8_MAX;
  return read;
}
inline constexpr auto kReadFields = [] {
  std::array<ReadFields, kCollectiveCount> all = {};
  for (int i = 0; i < kCollectiveCount; ++i)
    all[static_cast<std::size_t>(i)] = read_fields(Collective{static_cast<std::uint8_t>(i)});
  return all;
}();

/// A spec from what a caller wrote, with zeros in the fields that its collective does not read: anything may be there.
constexpr CallSpec spec_of(Collective collective, Type type, OpNumber op, int root, std::uint64_t count) noexcept {
  const ReadFields& read = kReadFields[static_cast<std::size_t>(collective)];
  CallSpec spec;
  spec.collective = collective;
  spec.type = Type{static_cast<std::uint8_t>(static_cast<std::uint8_t>(type) & read.type)};
  spec.op = OpNumber{static_cast<std::uint8_t>(static_cast<std::uint8_t>(op) & read.op)};
  spec.root = root & read.root;
  spec.count = count & read.count;
  return spec;
}

/// Whether `content` belongs to the call.
constexpr bool has_content(const CallSpec& spec) noexcept {
  return spec.has(CallMark::leaves) || spec.has(CallMark::block_counts);
}
/// Whether blocks have lengths of their own.
constexpr bool has_unequal_blocks(const CallSpec& spec) noexcept {
  return spec.has(CallMark::unequal) || spec.has(CallMark::block_counts);
}
/// Collectives whose blocks may have lengths of their own. A reduce_scatter runs the plan for equal blocks over another
/// layout, since all ranks know all lengths. So does a scatter or gather by a plan of flows, once the root has told the
/// others the lengths. The other collectives run as pairwise exchanges: an all_gather as an alltoall that has the same
/// block for all ranks.
constexpr bool may_be_unequal(Collective collective) noexcept {
  return is_personalised(collective) || collective == Collective::all_gather ||
         collective == Collective::reduce_scatter;
}
/// The count in the call records for a call whose blocks have lengths of their own.
inline constexpr std::uint64_t kUnequalInRecord = UINT64_MAX;
constexpr std::uint64_t count_on_record(const CallSpec& spec) noexcept {
  return has_unequal_blocks(spec) ? kUnequalInRecord : spec.count;
}

/// "allreduce of 4 x f32, op sum".
std::string call_text(const CallSpec& spec);

}  // namespace torii
