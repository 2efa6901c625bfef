// SPDX-License-Identifier: Apache-2.0
// The protocol between a rank and torii-run over the inherited socket: the rank sends its part; torii-run answers with
// all parts or a reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace torii::job_socket {

/// The environment of a started rank: its end of a SOCK_STREAM pair, its rank and the number of ranks.
inline constexpr const char* kFdVariable = "TORII_JOB_FD";
inline constexpr const char* kRankVariable = "TORII_RANK";
inline constexpr const char* kRanksVariable = "TORII_RANKS";

inline constexpr std::uint32_t kMagic = 0x746f7269;  // "tori"
/// Set in timeout_ms of the first request of a join: after a failure all begin anew. (A torii-run that does not know it
/// waits for weeks instead of the time.)
inline constexpr std::uint32_t kBegins = 0x80000000;
/// The same where the rank keeps its context: it has not met the new process of a rank that was replaced.
inline constexpr std::uint32_t kBeginsInContext = 0x40000000;
/// The largest part of one rank; a larger one is refused as broken.
inline constexpr std::uint64_t kPartBytesMax = std::uint64_t{1} << 26;

/// Followed by `bytes` bytes: this rank's part of the gather.
struct Request {
  std::uint32_t magic = kMagic;
  std::uint32_t timeout_ms =
      0;  ///< perhaps with one of the above; torii-run gives up if a part is missing this long after the first part
  std::uint64_t bytes = 0;
};

/// Followed by `bytes` bytes: all parts in rank order if `status` is 0, otherwise the reason as a sentence.
struct Reply {
  std::uint32_t magic = kMagic;
  std::int32_t status = 0;  ///< a torii::Status
  std::int32_t rank = -1;   ///< the rank that the sentence is about, or -1
  std::uint32_t reserved = 0;
  std::uint64_t bytes = 0;
};

static_assert(sizeof(Request) == 16 && sizeof(Reply) == 24, "no padding crosses the socket");

}  // namespace torii::job_socket
