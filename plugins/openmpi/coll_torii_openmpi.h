/* SPDX-License-Identifier: Apache-2.0
 * Open MPI's headers, and the check that they belong to series 4.1. Headers that need Open MPI include this one first,
 * because ompi_config.h must come before all else.
 *
 * The files form layers, lowest first. A file includes only its own header and those of earlier files; tests/tidy
 * checks it (include_rules.cpp, kOpenMpiOrder).
 *   openmpi, operations         Open MPI's headers; the table of operations
 *   state, report               settings, context and counts of the process; messages, error codes, counting
 *   elements, call              MPI's types in memory; one call as torii runs it
 *   reduction, access           kernels and user functions of reductions; vectors that torii moves by parts
 *   describe*                   from the arguments of MPI to a call
 *   staging                     memory that replaces the caller's
 *   module, delay, attach       the data of a communicator; when teams pay; context and teams
 *   request                     requests and the callback that moves them
 *   slots, blocking, non_blocking, persistent    the functions that Open MPI calls
 *   component                   parameters, and one module per communicator */
#pragma once

#include <ompi_config.h>

#if OMPI_MAJOR_VERSION != 4 || OMPI_MINOR_VERSION != 1
#error "coll/torii is written for Open MPI 4.1; docs/openmpi.md says what other series need"
#endif

#include <ompi/communicator/communicator.h>
#include <ompi/constants.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/base/coll_base_util.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/op/op.h>
#include <ompi/request/request.h>
#include <opal/runtime/opal_progress.h>
#include <opal/threads/thread_usage.h>
#include <opal/util/output.h>
