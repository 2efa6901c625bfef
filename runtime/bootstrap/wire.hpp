// SPDX-License-Identifier: Apache-2.0
// The protocol between ranks and rank 0 over TCP. Both ends prove that they know the job's token; then they exchange
// frames, each with a keyed hash.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace torii::wire {

static_assert(std::endian::native == std::endian::little, "messages are sent as they are in memory");

using Key = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

inline constexpr std::uint32_t kMagic = 0x746f726a;  // "torj"
/// The version of the protocol. Ranks of different versions report the difference.
inline constexpr std::uint16_t kVersion = 3;

enum class Refusal : std::uint16_t { none = 0, token = 1, ranks = 2, taken = 3, descriptors = 4 };

/// The first message, from a rank.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::int32_t rank = -1;
  std::int32_t ranks = 0;
  Nonce nonce{};
  /// The keyed hash of the fields above. Rank 0 drops a connection with a wrong mark at once, so strangers take no
  /// place among the pending connections. A right mark alone admits no rank, because it can be recorded and repeated.
  Proof mark{};
};

/// The second message, from rank 0.
struct Challenge {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Refusal refusal = Refusal::none;  ///< or `token`: the mark of the Hello is wrong, and the connection is dropped
  Nonce nonce{};
};

/// The third message, from the rank. The rank sends its proof first, so that a port scanner receives nothing that
/// depends on the token.
struct Response {
  Proof proof{};
};

/// The last message, from rank 0.
struct Verdict {
  std::uint32_t magic = kMagic;
  Refusal refusal = Refusal::none;
  std::uint16_t reserved = 0;
  std::int32_t ranks = 0;  ///< rank 0's number of ranks
  Proof proof{};           ///< zero if refused
};

static_assert(sizeof(Hello) == 80 && sizeof(Challenge) == 40 && sizeof(Response) == 32 && sizeof(Verdict) == 44,
              "no padding crosses the wire");

/// The key that is derived from a token; the token itself is never sent.
Key job_key(std::string_view token);
Nonce random_nonce();
/// The first message of `rank`, with a new nonce and the mark of `key`.
Hello make_hello(const Key& key, int rank, int ranks);
/// The right value of `hello.mark`.
Proof mark_of(const Key& key, const Hello& hello);
/// The proof that the sender knows `key`. `role` is "rank" or "rank 0", so that neither end can return the other's
/// proof.
Proof prove(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge);
/// The key of the frames that `role` sends.
Key session_key(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge);
/// Compares in constant time.
bool equal(const Proof& a, const Proof& b) noexcept;
std::string hex(std::span<const std::byte> bytes);

/// Followed by `bytes` bytes of payload and the keyed hash of both.
struct FrameHead {
  std::uint32_t magic = kMagic;
  std::int32_t status = 0;  ///< a torii::Status; unless it is ok, the payload is a sentence
  std::int32_t rank = -1;   ///< the rank that the sentence is about, or -1
  std::uint32_t join = 1;   ///< the number of the context or team that is being made
  std::uint64_t round = 0;  ///< the number of the all-gather in it; no frame can be recorded and sent again
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FrameHead) == 32, "no padding crosses the wire");

Proof seal(const Key& key, const FrameHead& head, std::span<const std::byte> payload);

/// Assembles a frame from the pieces that the socket delivers. Memory grows with the bytes that arrive, not with the
/// size that a head claims.
class FrameReader {
 public:
  FrameReader() = default;
  FrameReader(const Key& key, std::uint64_t bytes_max) : key_(key), bytes_max_(bytes_max) {}
  /// The memory for the next bytes; empty if the frame is complete.
  std::span<std::byte> room();
  /// Call after `bytes` bytes were written to room(). Throws Error{transport} if they cannot be the peer's.
  void filled(std::size_t bytes);
  bool complete() const noexcept { return stage_ == Stage::complete; }
  const FrameHead& head() const noexcept { return head_; }
  std::span<const std::byte> payload() const noexcept { return payload_; }
  /// Discards the frame and begins the next one.
  void next();

 private:
  enum class Stage { head, payload, proof, complete };

  Key key_{};
  std::uint64_t bytes_max_ = 0;
  Stage stage_ = Stage::head;
  std::size_t have_ = 0;  ///< bytes of the current stage
  FrameHead head_;
  std::vector<std::byte> payload_;
  Proof proof_{};
};

}  // namespace torii::wire
