// SPDX-License-Identifier: Apache-2.0
// Joining by a shared file: rank 0 writes where it listens, the others read it and connect over TCP.
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
/// Nothing, with the reason, when the text is not whole, not of this version, or made with another job token.
std::optional<RendezvousFile> parse_rendezvous_file(std::string_view text, std::string_view job_token,
                                                    std::string& why_not);

/// Rank 0 listens on the interfaces of TORII_INTERFACE, at ports of TORII_PORTS, and puts that with a fresh secret into
/// `path`, a file that only this user can read, in a folder that all ranks see. A file that an earlier job left there
/// is replaced; anything else there is an error. The file is removed when all ranks have joined, or joining has failed.
/// One job at a time meets at a path. Throws Error: those of admit_ranks() and dial_rank_0(), invalid_argument for the
/// path, no_resource.
std::unique_ptr<Bootstrap> join_file(const Settings& settings, int rank, int ranks, const std::string& path);

}  // namespace torii
