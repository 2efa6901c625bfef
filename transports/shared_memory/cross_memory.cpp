// SPDX-License-Identifier: Apache-2.0
// process_vm_readv() and the probe that tells whether it works here.
#include "transports/shared_memory/cross_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "runtime/base/page.hpp"
#include "transports/shared_memory/handshake.hpp"

namespace torii::shared_memory {
namespace {

struct Finding {
  std::int32_t peer = -1;  ///< the first rank that cannot be read; -1: all can
  std::int32_t error = 0;  ///< 0: the read returned bytes of another process
};

std::string sentence(std::size_t rank, const Finding& finding) {
  return "rank " + std::to_string(rank) + " cannot read the memory of rank " + std::to_string(finding.peer) + " (" +
         (finding.error == 0 ? "its process number means another process here" : std::strerror(finding.error)) + ")";
}

}  // namespace

/// One word for all contexts of the process, at an address that stays. A forked child finds 0 there, and another
/// program something else or nothing.
CrossMemory::Proof CrossMemory::own_proof() {
  static auto& own = *new (map_page_wiped_on_fork()) std::atomic<std::uint64_t>;
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(own) == sizeof(Proof::word));
  const Token token = random_token();
  std::uint64_t drawn = 0;
  std::memcpy(&drawn, token.data(), sizeof(drawn));
  std::uint64_t word = 0;
  if (own.compare_exchange_strong(word, drawn | 1, std::memory_order_relaxed)) word = drawn | 1;
  return {reinterpret_cast<std::uintptr_t>(&own), word};
}

CrossMemory::CrossMemory(Bootstrap& bootstrap, const NodePeers& peers)
    : proofs_(gather_values(bootstrap, own_proof())) {
  Finding mine;
  for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
    pids_.push_back(peers.pid(peer));
    if (mine.peer >= 0 || peers.base(peer) == nullptr) continue;
    std::byte seen[sizeof(Proof::word)];
    const Status status = read(peer, proofs_[static_cast<std::size_t>(peer)].address, seen, sizeof(seen));
    if (status != Status::ok) mine = {peer, status == Status::peer_lost ? 0 : errno};
  }
  // Nobody leaves before all have read its word.
  const std::vector<Finding> all = gather_values(bootstrap, mine);
  const auto first = std::find_if(all.begin(), all.end(), [](const Finding& finding) { return finding.peer >= 0; });
  if (first != all.end()) why_not_ = sentence(static_cast<std::size_t>(first - all.begin()), *first);
}

/// The proof is read by the same call, and a call reads one process only. Before it or after it would leave a moment in
/// which the process ends, or runs another program.
Status CrossMemory::read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) const noexcept {
  const Proof& proof = proofs_[static_cast<std::size_t>(peer)];
  constexpr std::size_t kWordBytes = sizeof(proof.word);
  while (bytes != 0) {
    std::uint64_t word = 0;
    const iovec local[] = {{&word, kWordBytes}, {to, bytes}};
    const iovec remote[] = {{reinterpret_cast<void*>(proof.address), kWordBytes},
                            {reinterpret_cast<void*>(address), bytes}};
    const ssize_t done = process_vm_readv(pids_[static_cast<std::size_t>(peer)], local, 2, remote, 2, 0);
    if (done < 0 && errno != ESRCH && errno != EFAULT) return Status::unsupported;
    if (word != proof.word) return Status::peer_lost;
    // A missing page ends a read early; the next try then reads the word alone.
    const std::size_t read_bytes = static_cast<std::size_t>(done) - kWordBytes;
    if (read_bytes == 0) return Status::transport;
    to += read_bytes;
    address += read_bytes;
    bytes -= read_bytes;
  }
  return Status::ok;
}

}  // namespace torii::shared_memory
