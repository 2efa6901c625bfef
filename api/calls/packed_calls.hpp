// SPDX-License-Identifier: Apache-2.0
// Short neighbours in a group of calls run as one call over a packed copy of their vectors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "api/agreement/membership.hpp"
#include "api/calls/request.hpp"
#include "runtime/base/tuned_constants.hpp"

namespace torii {

/// A call that has joined a group.
struct GroupCall {
  explicit GroupCall(const CallDescription& given) : call(given), bytes(given.spec.count * size_of(given.spec.type)) {}
  CallDescription call;
  std::size_t bytes;  ///< of its vector, or of one rank's block. Means nothing where the count is beyond all limits
  /// With unequal blocks: their lengths, which were read when the call joined. Otherwise nullptr.
  std::unique_ptr<Request> request;
};

/// Limits of a member of a packed call, and of all members together, in bytes of their vectors. The
/// same everywhere, since packing may change bits, which must not depend on where ranks are.
struct PackingLimits {
  std::size_t member_bytes;
  std::size_t all_bytes;
};
inline constexpr PackingLimits kPackingLimits = {tuned<std::size_t>("packing.call_bytes_max"),
                                                 tuned<std::size_t>("packing.all_bytes_max")};

/// Bytes of a call's vector; of a collective with a block per rank those of all blocks.
std::size_t vector_bytes(const GroupCall& call, int ranks) noexcept;

/// How many of `calls`, from the first one on, run as one call. Depends only on what is equal on all ranks.
std::size_t count_packed(std::span<const GroupCall> calls, int ranks, const PackingLimits& limits) noexcept;

/// Checks the buffers of the members, of which the call over the packed copy knows nothing. Throws
/// Error{invalid_argument}.
void check_members(std::span<const GroupCall> calls, int rank);

/// The call that runs in their place, in `memory`, which has vector_bytes() for each of them.
CallDescription packed_call(std::span<const GroupCall> calls, std::byte* memory, const Membership& members) noexcept;

/// Copies the members' inputs there before the call, and its results to their places afterwards.
void pack(std::span<const GroupCall> calls, std::byte* memory, const Membership& members) noexcept;
void unpack(std::span<const GroupCall> calls, const std::byte* memory, const Membership& members) noexcept;

}  // namespace torii
