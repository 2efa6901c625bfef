// SPDX-License-Identifier: Apache-2.0
// process_vm_readv() and the probe that tells whether it works here.
#include "transports/shared_memory/cross_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/shared_memory/handshake.hpp"

namespace torii::shared_memory {
namespace {

struct Proof {
  std::uint64_t address;
  Token token;
};

struct Finding {
  std::int32_t peer = -1;  ///< the first rank that cannot be read; -1: all can
  std::int32_t error = 0;  ///< 0: the read returned bytes of another process
};

std::string sentence(std::size_t rank, const Finding& finding) {
  return "rank " + std::to_string(rank) + " cannot read the memory of rank " + std::to_string(finding.peer) + " (" +
         (finding.error == 0 ? "its process number means another process here" : std::strerror(finding.error)) + ")";
}

}  // namespace

CrossMemory::CrossMemory(Bootstrap& bootstrap, const NodePeers& peers) {
  const Token token = random_token();
  const std::vector<Proof> proofs = gather_values(bootstrap, Proof{reinterpret_cast<std::uintptr_t>(&token), token});
  Finding mine;
  for (int peer = 0; peer < bootstrap.ranks(); ++peer) {
    pids_.push_back(peers.pid(peer));
    if (mine.peer >= 0 || peers.base(peer) == nullptr) continue;
    const Proof& proof = proofs[static_cast<std::size_t>(peer)];
    Token seen{};
    const Status status = read(peer, proof.address, seen.data(), seen.size());
    if (status == Status::ok && seen == proof.token) continue;
    mine = {peer, status == Status::ok ? 0 : errno};
  }
  // Nobody leaves before all have read its token.
  const std::vector<Finding> all = gather_values(bootstrap, mine);
  const auto first = std::find_if(all.begin(), all.end(), [](const Finding& finding) { return finding.peer >= 0; });
  if (first != all.end()) why_not_ = sentence(static_cast<std::size_t>(first - all.begin()), *first);
}

Status CrossMemory::read(int peer, std::uintptr_t address, std::byte* to, std::size_t bytes) const noexcept {
  while (bytes != 0) {
    const iovec local = {to, bytes};
    const iovec remote = {reinterpret_cast<void*>(address), bytes};
    const ssize_t done = process_vm_readv(pids_[static_cast<std::size_t>(peer)], &local, 1, &remote, 1, 0);
    if (done <= 0) return done < 0 && errno == ESRCH ? Status::peer_lost : Status::transport;
    // A missing page ends a read early; the next try then returns the reason.
    to += done;
    address += static_cast<std::uintptr_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return Status::ok;
}

}  // namespace torii::shared_memory
