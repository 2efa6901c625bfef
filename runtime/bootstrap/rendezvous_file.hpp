// SPDX-License-Identifier: Apache-2.0
// Joins by a shared file: rank 0 writes its addresses into the file; the others read them and connect over TCP.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/bootstrap/tcp.hpp"

namespace torii {

/// The content of the file. The random secret and TORII_JOB_TOKEN together make the job's key.
struct RendezvousFile {
  int ranks = 0;
  std::string secret;  ///< 64 hexadecimal digits
  std::vector<Address> addresses;
};

std::string print_rendezvous_file(const RendezvousFile& file, std::string_view job_token);
/// Nothing, with the reason, if the text is not whole, not of this version, or made with another job token.
std::optional<RendezvousFile> parse_rendezvous_file(std::string_view text, std::string_view job_token,
                                                    std::string& why_not);

/// Rank 0 listens on the interfaces of TORII_INTERFACE, at ports of TORII_PORTS. It writes the addresses and a fresh
/// secret to `path`, a file that only this user can read, in a folder that all ranks see. Rank 0 replaces the file of
/// an earlier job; anything else at `path` is an error. The file is removed once all ranks have joined or joining has
/// failed. Only one job at a time can use a path. Throws Error: those of admit_ranks() and dial_rank_0(),
/// invalid_argument for the path, no_resource.
std::unique_ptr<Bootstrap> join_file(const Settings& settings, int rank, int ranks, const std::string& path);

}  // namespace torii
