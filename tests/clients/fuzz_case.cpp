// SPDX-License-Identifier: Apache-2.0
// Draws cases, fills their buffers, and makes the calls.
#include "tests/clients/fuzz_case.hpp"

#include <mpi-ext.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tests/clients/fuzz_sides.hpp"

namespace torii::clients {
namespace {

constexpr const char* kNames[kCollectives] = {
    "barrier",        "bcast",    "reduce",  "allreduce", "reduce_scatter_block",
    "reduce_scatter", "scan",     "exscan",  "allgather", "allgatherv",
    "gather",         "gatherv",  "scatter", "scatterv",  "alltoall",
    "alltoallv",      "alltoallw"};
constexpr const char* kFormBegins[] = {"", "i", "persistent "};

bool has_root(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce ||
         (collective >= Collective::gather && collective <= Collective::scatterv);
}
bool may_be_in_place(Collective collective) {
  return collective != Collective::barrier && collective != Collective::bcast;
}

int draw_count(Random& random) {
  switch (draw(random, 0, 9)) {
    case 0:
      return 0;
    case 1:
      return draw(random, 100, 3000);
    case 2:
      return draw(random, 0, 12) == 0 ? draw(random, 10000, 60000) : draw(random, 1, 200);
    default:
      return draw(random, 1, 24);
  }
}

/// The arguments as MPI wants them, in[0] and in place already decided.
struct Arguments {
  const void* in;
  void* out;
  int in_count, out_count, root;
  MPI_Datatype in_type, out_type;
  const int *in_counts, *in_places, *out_counts, *out_places, *counts;
  const MPI_Datatype *in_types, *out_types;
  MPI_Op op;
  int rank;
  Form form;
};

/// MPI's function `NAME`, its non-blocking form MPI_I`name`, or its persistent one.
#define CALL(NAME, name, ...)                                               \
  (a.form == Form::blocking       ? MPI_##NAME(__VA_ARGS__, comm)           \
   : a.form == Form::non_blocking ? MPI_I##name(__VA_ARGS__, comm, request) \
                                  : MPIX_##NAME##_init(__VA_ARGS__, comm, MPI_INFO_NULL, request))

int call_reduction(const Case& call, const Arguments& a, MPI_Comm comm, MPI_Request* request) {
  switch (call.collective) {
    case Collective::reduce:
      return CALL(Reduce, reduce, a.in, a.out, a.in_count, a.in_type, a.op, a.root);
    case Collective::allreduce:
      return CALL(Allreduce, allreduce, a.in, a.out, a.in_count, a.in_type, a.op);
    case Collective::reduce_scatter_block:
      return CALL(Reduce_scatter_block, reduce_scatter_block, a.in, a.out, a.in_count, a.in_type, a.op);
    case Collective::reduce_scatter:
      return CALL(Reduce_scatter, reduce_scatter, a.in, a.out, a.counts, a.in_type, a.op);
    case Collective::scan:
      return CALL(Scan, scan, a.in, a.out, a.in_count, a.in_type, a.op);
    default:
      return CALL(Exscan, exscan, a.in, a.out, a.in_count, a.in_type, a.op);
  }
}

int call_with_counts(const Case& call, const Arguments& a, MPI_Comm comm, MPI_Request* request) {
  switch (call.collective) {
    case Collective::allgatherv:
      return CALL(Allgatherv, allgatherv, a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places,
                  a.out_type);
    case Collective::gatherv:
      return CALL(Gatherv, gatherv, a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places, a.out_type,
                  a.root);
    case Collective::scatterv:
      return CALL(Scatterv, scatterv, a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts[a.rank],
                  a.out_type, a.root);
    case Collective::alltoallv:
      return CALL(Alltoallv, alltoallv, a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts, a.out_places,
                  a.out_type);
    default:
      return CALL(Alltoallw, alltoallw, a.in, a.in_counts, a.in_places, a.in_types, a.out, a.out_counts, a.out_places,
                  a.out_types);
  }
}

int call_movement(const Case& call, const Arguments& a, MPI_Comm comm, MPI_Request* request) {
  switch (call.collective) {
    case Collective::barrier:
      return a.form == Form::blocking       ? MPI_Barrier(comm)
             : a.form == Form::non_blocking ? MPI_Ibarrier(comm, request)
                                            : MPIX_Barrier_init(comm, MPI_INFO_NULL, request);
    case Collective::bcast:
      return CALL(Bcast, bcast, a.out, a.out_count, a.out_type, a.root);
    case Collective::allgather:
      return CALL(Allgather, allgather, a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type);
    case Collective::gather:
      return CALL(Gather, gather, a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root);
    case Collective::scatter:
      return CALL(Scatter, scatter, a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root);
    default:
      return CALL(Alltoall, alltoall, a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type);
  }
}

#undef CALL

/// What a call leaves: its result, and its input, which must be untouched.
struct Outcome {
  Buffer in, out;
};

Outcome buffers_of(const Case& call, const Sides& sides, int rank) {
  Outcome buffers = {Buffer(sides.in_layout, sides.in_elements), Buffer(sides.out_layout, sides.out_elements)};
  Random values(call.data_seed + 31 * static_cast<std::uint64_t>(rank));
  // Products and powers stay exact: every element is 1 or 2, most are 1.
  const bool is_product = call.op.name == "prod";
  const auto value = [&](std::size_t) { return is_product ? 1 + (draw(values, 0, 7) == 0) : draw(values, 0, 13); };
  buffers.in.fill(sides.in_layout, 0, sides.in_elements, value);
  // The result too: in place it is the input, and otherwise what stands there must not matter.
  buffers.out.fill(sides.out_layout, 0, sides.out_elements, value);
  return buffers;
}

void finish(const Case& call, MPI_Request& request) {
  int done = call.test ? 0 : 1;
  while (done == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// Starts each as often as the case says, with the operands of the first time, in different orders on the ranks.
void run_persistent(const Case& call, const Outcome& operands, int rank, std::vector<Outcome>& all,
                    std::vector<MPI_Request>& requests) {
  for (int time = 0; time < call.twice; ++time) {
    for (Outcome& one : all) one = operands;  // of equal size, so in the same memory
    for (std::size_t i = 0; i < all.size(); ++i) {
      MPI_Start(&requests[rank % 2 == 0 ? i : all.size() - 1 - i]);
    }
    for (MPI_Request& request : requests) finish(call, request);
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

Outcome make_call(const Case& call, const Sides& sides, MPI_Comm* comm, int rank, bool frees) {
  std::vector<Outcome> all;
  for (int i = 0; i < call.twice; ++i) all.push_back(buffers_of(call, sides, rank));
  const Outcome operands = all.front();
  const bool is_root = !has_root(call.collective) || rank == call.root;
  const bool scatters = call.collective == Collective::scatter || call.collective == Collective::scatterv;
  std::vector<MPI_Request> requests(all.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool in_place = call.in_place && is_root;
    const Arguments arguments = {in_place && !scatters ? MPI_IN_PLACE : all[i].in.data(),
                                 in_place && scatters ? MPI_IN_PLACE : all[i].out.data(),
                                 static_cast<int>(sides.in_count),
                                 static_cast<int>(sides.out_count),
                                 call.root,
                                 sides.in_layout.type(),
                                 sides.out_layout.type(),
                                 sides.in_counts.data(),
                                 sides.in_places.data(),
                                 sides.out_counts.data(),
                                 sides.out_places.data(),
                                 call.counts.data(),
                                 sides.in_types.data(),
                                 sides.out_types.data(),
                                 call.op.op,
                                 rank,
                                 call.form};
    const bool counts = has_counts(call.collective) && call.collective != Collective::reduce_scatter;
    (combines(call.collective) ? call_reduction
     : counts                  ? call_with_counts
                               : call_movement)(call, arguments, *comm, &requests[i]);
  }
  if (frees) MPI_Comm_free(comm);
  if (call.form == Form::persistent) {
    run_persistent(call, operands, rank, all, requests);
    return all.back();
  }
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    if (*request != MPI_REQUEST_NULL) finish(call, *request);
  }
  return all.back();
}

}  // namespace

const char* name(Collective collective) { return kNames[static_cast<int>(collective)]; }

std::string Case::text() const {
  std::string text = std::string(kFormBegins[static_cast<int>(form)]) + name(collective) + " of " +
                     std::to_string(count) + " x " + basic.name + " (shape " + std::to_string(shape) + ")";
  if (combines(collective)) text += ", op " + op.name;
  if (has_root(collective)) text += ", root " + std::to_string(root);
  for (const int each : counts) text += " " + std::to_string(each);
  return text + (in_place ? ", in place" : "") + (twice > 1 ? ", twice" : "");
}

bool is_torii_request(const Case& call, int ranks) {
  if (call.form == Form::blocking || ranks < 2) return false;
  if (call.form == Form::persistent) return true;
  // With a delay the first ones go to the component below, and so do those that look like Open MPI's own.
  const char* const delay = std::getenv("OMPI_MCA_coll_torii_delay");
  if (delay == nullptr || std::string_view(delay) != "0" || call.collective == Collective::bcast) return false;
  const bool numbers = call.collective == Collective::allreduce || call.collective == Collective::reduce;
  return !numbers || (call.op.op != MPI_MAX && call.op.op != MPI_MIN);
}

Case draw_case(Random& random, int ranks) {
  Case call;
  call.collective = static_cast<Collective>(draw(random, 0, kCollectives - 1));
  call.basic = basics()[random() % basics().size()];
  call.root = draw(random, 0, ranks - 1);
  call.count = draw_count(random);
  call.in_place = may_be_in_place(call.collective) && draw(random, 0, 2) == 0;
  const int form = draw(random, 0, 5);
  call.form = form < 2 ? Form::non_blocking : form == 2 && ranks > 1 ? Form::persistent : Form::blocking;
  call.twice = call.form != Form::blocking ? draw(random, 1, 2) : 1;
  call.test = draw(random, 0, 1) == 0;
  call.data_seed = random();
  if (combines(call.collective)) {
    call.user = std::max(0, draw(random, -2, 2));
    if (call.user == 0) {
      const std::vector<Operation> operations = operations_of(call.basic);
      call.op = operations[random() % operations.size()];
    } else {
      call.basic =
          *std::find_if(basics().begin(), basics().end(), [](const Basic& one) { return one.type == MPI_UINT32_T; });
      call.shape = draw(random, 0, Layout::kShapes - 1);
      call.op = call.user == 1 ? Operation{"user sum", user_sum()} : Operation{"user affine", user_affine()};
    }
  } else {
    call.count = std::min(call.count, 400);
  }
  if (has_counts(call.collective)) {
    // In place two ranks exchange as much as each other, and here a rank sends the same to all.
    const bool equal = draw(random, 0, 1) == 0 || (call.collective >= Collective::alltoallv && call.in_place);
    // Now and then a block is so long that the others are not padded to its length.
    const int most = draw(random, 0, 7) == 0 ? 300 : 9;
    for (int rank = 0; rank < ranks; ++rank) call.counts.push_back(equal ? call.count : draw(random, 0, most));
  }
  // libnbc's own buffers are too short for elements that begin behind their place; torii's are not.
  if (call.shape >= 4 && !is_torii_request(call, ranks)) call.form = Form::blocking;
  if (call.form == Form::blocking) call.twice = 1;
  return call;
}

std::string compare(const Case& call, MPI_Comm* with, MPI_Comm without, bool frees) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(without, &rank);
  MPI_Comm_size(without, &ranks);
  const Sides sides = sides_of(call, rank, ranks);
  use_layout(sides.in_layout);
  const Outcome got = make_call(call, sides, with, rank, frees);
  Case blocking = call;
  blocking.form = Form::blocking;
  blocking.twice = 1;
  const Outcome wanted = make_call(blocking, sides, &without, rank, false);
  constexpr std::size_t kAll = ~std::size_t{0};
  std::ptrdiff_t at = Buffer::first_difference(sides.in_layout, got.in, wanted.in, kAll);
  if (at >= 0) return "the input at byte " + std::to_string(at);
  // MPI leaves undefined: results of others than the root, of exscan's first rank, and what stands behind the own block
  // after a reduce_scatter in place.
  if (call.collective == Collective::reduce && rank != call.root) return "";
  if (call.collective == Collective::exscan && rank == 0) return "";
  std::size_t elements = kAll;
  if (call.in_place && call.collective == Collective::reduce_scatter_block) elements = sides.out_count;
  if (call.in_place && call.collective == Collective::reduce_scatter) {
    elements = static_cast<std::size_t>(call.counts[static_cast<std::size_t>(rank)]);
  }
  at = Buffer::first_difference(sides.out_layout, got.out, wanted.out, elements);
  return at < 0 ? "" : "the result at byte " + std::to_string(at);
}

}  // namespace torii::clients
