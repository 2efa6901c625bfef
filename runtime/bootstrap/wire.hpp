// SPDX-License-Identifier: Apache-2.0
// The protocol between ranks and rank 0 over TCP: a mutual proof that both know the job's token, then frames with a
// keyed hash each.
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

static_assert(std::endian::native == std::endian::little, "messages go over the wire as they stand in memory");

using Key = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

inline constexpr std::uint32_t kMagic = 0x746f726a;  // "torj"
/// Ranks of different versions of this protocol tell each other so.
inline constexpr std::uint16_t kVersion = 2;

enum class Refusal : std::uint16_t { none = 0, token = 1, ranks = 2, taken = 3 };

/// First message, of a rank.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t reserved = 0;
  std::int32_t rank = -1;
  std::int32_t ranks = 0;
  Nonce nonce{};
  /// The keyed hash of all that comes before it. Rank 0 drops a connection with a wrong mark at once, so strangers that
  /// say hello take no place. A right mark alone admits no rank: it can be recorded and repeated.
  Proof mark{};
};

/// Second, of rank 0.
struct Challenge {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Refusal refusal = Refusal::none;  ///< or `token`: the mark of the Hello is wrong, and no Response is awaited
  Nonce nonce{};
};

/// Third, of the rank. The rank proves itself first: a port scanner gets nothing that depends on the token.
struct Response {
  Proof proof{};
};

/// Last, of rank 0.
struct Verdict {
  std::uint32_t magic = kMagic;
  Refusal refusal = Refusal::none;
  std::uint16_t reserved = 0;
  std::int32_t ranks = 0;  ///< as rank 0 counts them
  Proof proof{};           ///< zero when refused
};

static_assert(sizeof(Hello) == 80 && sizeof(Challenge) == 40 && sizeof(Response) == 32 && sizeof(Verdict) == 44,
              "no padding crosses the wire");

/// The key that stands for a token; the token itself is never sent.
Key job_key(std::string_view token);
Nonce random_nonce();
/// The first message of `rank`, with a new nonce and the mark of `key`.
Hello make_hello(const Key& key, int rank, int ranks);
/// The value of `hello.mark` if its maker knows `key`.
Proof mark_of(const Key& key, const Hello& hello);
/// The proof that its maker knows `key`; `role` is "rank" or "rank 0", so that neither can send back the other's.
Proof prove(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge);
/// The key of the frames in one direction: `role` is the sender.
Key session_key(const Key& key, std::string_view role, const Hello& hello, const Challenge& challenge);
/// Takes the same time wherever the two differ.
bool equal(const Proof& a, const Proof& b) noexcept;
std::string hex(std::span<const std::byte> bytes);

/// Followed by `bytes` bytes of payload and the keyed hash of both.
struct FrameHead {
  std::uint32_t magic = kMagic;
  std::int32_t status = 0;  ///< a torii::Status; the payload of another than ok is a sentence
  std::int32_t rank = -1;   ///< the rank that the sentence speaks of, or -1
  std::uint32_t reserved = 0;
  std::uint64_t round = 0;  ///< which all_gather of the session, so that nothing can be sent again
  std::uint64_t bytes = 0;
};
static_assert(sizeof(FrameHead) == 32, "no padding crosses the wire");

Proof seal(const Key& key, const FrameHead& head, std::span<const std::byte> payload);

/// Puts one frame together from whatever pieces the socket gives. Memory is taken as bytes come, not as a head promises
/// them.
class FrameReader {
 public:
  FrameReader() = default;
  FrameReader(const Key& key, std::uint64_t bytes_max) : key_(key), bytes_max_(bytes_max) {}
  /// The place of the next bytes; empty when the frame is complete.
  std::span<std::byte> room();
  /// So many bytes were written into room(). Throws Error{transport} when they cannot be the peer's.
  void filled(std::size_t bytes);
  bool complete() const noexcept { return stage_ == Stage::complete; }
  const FrameHead& head() const noexcept { return head_; }
  std::span<const std::byte> payload() const noexcept { return payload_; }
  /// Forgets the frame; the next one begins.
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
