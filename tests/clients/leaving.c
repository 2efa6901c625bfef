/* SPDX-License-Identifier: Apache-2.0
 * Counts the instructions by which coll/torii leaves a call to the component below: mpirun -n 2 mpi_leaving, with
 * coll_torii_delay above the number of calls here. The slots below are replaced by stubs. A child of rank 0, which its
 * parent lets go on by single instructions, calls each stub, and then the slot that leaves the call to it. Prints "NAME
 * COUNT" for each operation, by how many instructions the second call is longer. */
#include "plugins/openmpi/coll_torii_module.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

static volatile sig_atomic_t phase; /* odd while a call is to be counted */
static int failed;
enum { NOT_TRACED = 3 }; /* the exit code of the child */

static int stub_bcast(void* buffer, int count, ompi_datatype_t* type, int root, MPI_Comm comm,
                      mca_coll_base_module_t* module) {
  (void)buffer, (void)count, (void)type, (void)root, (void)comm, (void)module;
  return OMPI_SUCCESS;
}
static int stub_reduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op, int root,
                       MPI_Comm comm, mca_coll_base_module_t* module) {
  (void)input, (void)result, (void)count, (void)type, (void)op, (void)root, (void)comm, (void)module;
  return OMPI_SUCCESS;
}
static int stub_allreduce(const void* input, void* result, int count, ompi_datatype_t* type, ompi_op_t* op,
                          MPI_Comm comm, mca_coll_base_module_t* module) {
  (void)input, (void)result, (void)count, (void)type, (void)op, (void)comm, (void)module;
  return OMPI_SUCCESS;
}
static int stub_allgather(const void* input, int input_count, ompi_datatype_t* input_type, void* result,
                          int result_count, ompi_datatype_t* result_type, MPI_Comm comm,
                          mca_coll_base_module_t* module) {
  (void)input, (void)input_count, (void)input_type, (void)result, (void)result_count, (void)result_type;
  (void)comm, (void)module;
  return OMPI_SUCCESS;
}

/* Each slot is called twice: the first call binds symbols. */
static void call_slots(MPI_Comm comm, coll_torii_module_t* module) {
  const mca_coll_base_comm_coll_t* const slots = comm->c_coll;
  double from[8] = {0};
  double to[16];
#define CALL(name, ...)                                                     \
  (void)slots->coll_##name(__VA_ARGS__, comm, slots->coll_##name##_module); \
  ++phase;                                                                  \
  (void)module->below_##name(__VA_ARGS__, comm, &module->super);            \
  ++phase;                                                                  \
  ++phase;                                                                  \
  (void)slots->coll_##name(__VA_ARGS__, comm, slots->coll_##name##_module); \
  ++phase;
  CALL(bcast, to, 8, &ompi_mpi_double.dt, 1)
  CALL(reduce, from, to, 8, &ompi_mpi_double.dt, &ompi_mpi_op_sum.op, 0)
  CALL(allreduce, from, to, 8, &ompi_mpi_double.dt, &ompi_mpi_op_sum.op)
  CALL(allgather, from, 8, &ompi_mpi_double.dt, to, 8, &ompi_mpi_double.dt)
#undef CALL
}

/* The parent sees the child's `phase`, which is at the same address there. */
static void count_steps(pid_t child) {
  static const char* const names[] = {"bcast", "reduce", "allreduce", "allgather"};
  enum { OPERATIONS = sizeof(names) / sizeof(names[0]) };
  long counts[2 * OPERATIONS] = {0}; /* of the stub and of the slot, by turns */
  int status = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    errno = 0;
    const long now = (int)ptrace(PTRACE_PEEKDATA, child, &phase, NULL);
    if (errno == 0 && now % 2 == 1 && now / 2 < 2 * OPERATIONS) ++counts[now / 2];
    const int signal = WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, signal) != 0) break;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_TRACED) {
    printf("not possible: this system does not let a process trace its child\n");
    return;
  }
  failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  for (int i = 0; i < OPERATIONS; ++i) printf("%s %ld\n", names[i], counts[2 * i + 1] - counts[2 * i]);
}

static void count_leaving(MPI_Comm comm) {
  coll_torii_module_t* const module = (coll_torii_module_t*)comm->c_coll->coll_bcast_module;
  module->below_bcast = stub_bcast;
  module->below_reduce = stub_reduce;
  module->below_allreduce = stub_allreduce;
  module->below_allgather = stub_allgather;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(NOT_TRACED);
    raise(SIGSTOP);
    call_slots(comm, module);
    _exit(0);
  }
  count_steps(child);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) count_leaving(copy);
  MPI_Barrier(MPI_COMM_WORLD);
  /* The copy is not freed: its slots below are stubs. */
  MPI_Finalize();
  return failed;
}

#else

int main(void) {
  printf("not possible: written for x86-64\n");
  return 0;
}

#endif
