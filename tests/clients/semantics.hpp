// SPDX-License-Identifier: Apache-2.0
// What the files of mpi_semantics share.
#pragma once

#include <mpi.h>

#include <string>

namespace torii::clients {

extern int rank;   ///< of MPI_COMM_WORLD
extern int ranks;  ///< of MPI_COMM_WORLD

/// Ends the job with the text `what` unless `holds`.
void expect(bool holds, const std::string& what);
int sum_over(MPI_Comm comm, int mine);
/// Those for blocking and for non-blocking operations. A blocking one makes the latter if there was a non-blocking one.
void make_teams(MPI_Comm comm);

/// Types that hold absolute addresses, used with MPI_BOTTOM.
void absolute_addresses();
/// Broadcasts of vectors with holes, long enough to be packed while they move, of another layout on every rank.
void derived_broadcasts();
/// Counts of 0, types without bytes and null pointers, as ranks may mix them.
void empty_calls();
/// Groups whose first calls are left to the component below.
void delayed_teams();
/// Non-blocking calls that fail leave no request.
void refused_calls();
/// An id of a group that another group had, which is still alive on another rank.
void reused_ids();
/// Groups by the thousand, alive at once.
void thousands_alive();
/// Blocks farther apart than an int counts bytes.
void far_places();

}  // namespace torii::clients
