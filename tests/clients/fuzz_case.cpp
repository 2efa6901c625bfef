// SPDX-License-Identifier: Apache-2.0
// Draws cases, lays out their buffers, and makes the calls.
#include "tests/clients/fuzz_case.hpp"

#include <algorithm>
#include <numeric>

namespace torii::clients {
namespace {

constexpr const char* kNames[kCollectives] = {
    "barrier",        "bcast",   "reduce",  "allreduce", "reduce_scatter_block",
    "reduce_scatter", "scan",    "exscan",  "allgather", "allgatherv",
    "gather",         "gatherv", "scatter", "scatterv",  "alltoall",
    "alltoallv"};

bool combines(Collective collective) { return collective >= Collective::reduce && collective <= Collective::exscan; }
bool has_counts(Collective collective) {
  switch (collective) {
    case Collective::reduce_scatter:
    case Collective::allgatherv:
    case Collective::gatherv:
    case Collective::scatterv:
    case Collective::alltoallv:
      return true;
    default:
      return false;
  }
}
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

/// Both sides of one call on one rank: what goes in, what comes out, and how many elements of each type.
struct Sides {
  Sides(Layout in, Layout out) : in_layout(std::move(in)), out_layout(std::move(out)) {}
  Layout in_layout, out_layout;
  std::size_t in_count = 0, out_count = 0;  ///< elements per block, or of all where there are no blocks
  std::vector<int> in_counts, in_places;    ///< of the v forms, in elements
  std::vector<int> out_counts, out_places;
  std::size_t in_elements = 0, out_elements = 0;  ///< of the whole buffers
};

/// Units to elements.
int elements(const Layout& layout, int units) { return units * Layout::kUnit / layout.per_element(); }

/// Places with a gap of one element behind every block.
std::size_t place(const std::vector<int>& counts, std::vector<int>& places) {
  int at = 0;
  for (const int count : counts) {
    places.push_back(at);
    at += count + 1;
  }
  return static_cast<std::size_t>(at);
}

Layout layout_of(const Case& call, int rank, int side) {
  if (call.user == 2) return Layout::pair_of(call.basic, call.shape != 0);
  if (combines(call.collective)) return Layout(call.basic, call.shape);
  // Open MPI 4.1.4 unpacks a part of an element of more than 16 bytes over the end of its own buffer.
  if (call.basic.bytes > 16) return Layout(call.basic, 0);
  Random own(call.data_seed + 977 * static_cast<std::uint64_t>(rank) + static_cast<std::uint64_t>(side));
  return Layout(call.basic, draw(own, 0, Layout::kShapes - 1));
}

Sides sides_of(const Case& call, int rank, int ranks) {
  Sides sides(layout_of(call, rank, 0), layout_of(call, rank, 1));
  const auto all = static_cast<std::size_t>(ranks);
  const auto set = [&](std::size_t in_blocks, std::size_t out_blocks) {
    const bool unit = !combines(call.collective);
    sides.in_count = static_cast<std::size_t>(unit ? elements(sides.in_layout, call.count) : call.count);
    sides.out_count = static_cast<std::size_t>(unit ? elements(sides.out_layout, call.count) : call.count);
    sides.in_elements = sides.in_count * in_blocks;
    sides.out_elements = sides.out_count * out_blocks;
  };
  const auto set_v = [&](bool in_all, bool out_all) {
    for (const int count : call.counts) {
      sides.in_counts.push_back(
          elements(sides.in_layout, in_all ? count : call.counts[static_cast<std::size_t>(rank)]));
      sides.out_counts.push_back(
          elements(sides.out_layout, out_all ? count : call.counts[static_cast<std::size_t>(rank)]));
    }
    sides.in_elements = place(sides.in_counts, sides.in_places);
    sides.out_elements = place(sides.out_counts, sides.out_places);
  };
  switch (call.collective) {
    case Collective::barrier:
      break;
    case Collective::allgather:
    case Collective::gather:
      set(1, all);
      break;
    case Collective::scatter:
      set(all, call.in_place ? all : 1);
      break;
    case Collective::alltoall:
      set(all, all);
      break;
    case Collective::reduce_scatter_block:
      set(all, call.in_place ? all : 1);
      break;
    case Collective::reduce_scatter:
      sides.in_elements = static_cast<std::size_t>(std::accumulate(call.counts.begin(), call.counts.end(), 0));
      sides.out_elements = sides.in_elements;
      break;
    case Collective::allgatherv:
    case Collective::gatherv:
      set_v(false, true);
      break;
    case Collective::scatterv:
      set_v(true, false);
      break;
    case Collective::alltoallv:
      // Rank i sends counts[i] units to everybody, so it gets counts[j] of rank j.
      set_v(false, true);
      break;
    default:
      set(1, 1);
      break;
  }
  return sides;
}

/// The arguments as MPI wants them, in[0] and in place already decided.
struct Arguments {
  const void* in;
  void* out;
  int in_count, out_count, root;
  MPI_Datatype in_type, out_type;
  const int *in_counts, *in_places, *out_counts, *out_places, *counts;
  MPI_Op op;
  int rank;
};

int call_reduction(const Case& call, const Arguments& a, MPI_Comm comm, MPI_Request* request) {
  const bool now = request == nullptr;
  switch (call.collective) {
    case Collective::reduce:
      return now ? MPI_Reduce(a.in, a.out, a.in_count, a.in_type, a.op, a.root, comm)
                 : MPI_Ireduce(a.in, a.out, a.in_count, a.in_type, a.op, a.root, comm, request);
    case Collective::allreduce:
      return now ? MPI_Allreduce(a.in, a.out, a.in_count, a.in_type, a.op, comm)
                 : MPI_Iallreduce(a.in, a.out, a.in_count, a.in_type, a.op, comm, request);
    case Collective::reduce_scatter_block:
      return now ? MPI_Reduce_scatter_block(a.in, a.out, a.in_count, a.in_type, a.op, comm)
                 : MPI_Ireduce_scatter_block(a.in, a.out, a.in_count, a.in_type, a.op, comm, request);
    case Collective::reduce_scatter:
      return now ? MPI_Reduce_scatter(a.in, a.out, a.counts, a.in_type, a.op, comm)
                 : MPI_Ireduce_scatter(a.in, a.out, a.counts, a.in_type, a.op, comm, request);
    case Collective::scan:
      return now ? MPI_Scan(a.in, a.out, a.in_count, a.in_type, a.op, comm)
                 : MPI_Iscan(a.in, a.out, a.in_count, a.in_type, a.op, comm, request);
    default:
      return now ? MPI_Exscan(a.in, a.out, a.in_count, a.in_type, a.op, comm)
                 : MPI_Iexscan(a.in, a.out, a.in_count, a.in_type, a.op, comm, request);
  }
}

int call_movement(const Case& call, const Arguments& a, MPI_Comm comm, MPI_Request* request) {
  const bool now = request == nullptr;
  switch (call.collective) {
    case Collective::barrier:
      return now ? MPI_Barrier(comm) : MPI_Ibarrier(comm, request);
    case Collective::bcast:
      return now ? MPI_Bcast(a.out, a.out_count, a.out_type, a.root, comm)
                 : MPI_Ibcast(a.out, a.out_count, a.out_type, a.root, comm, request);
    case Collective::allgather:
      return now ? MPI_Allgather(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, comm)
                 : MPI_Iallgather(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, comm, request);
    case Collective::allgatherv:
      return now ? MPI_Allgatherv(a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places, a.out_type,
                                  comm)
                 : MPI_Iallgatherv(a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places, a.out_type,
                                   comm, request);
    case Collective::gather:
      return now ? MPI_Gather(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root, comm)
                 : MPI_Igather(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root, comm, request);
    case Collective::gatherv:
      return now ? MPI_Gatherv(a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places, a.out_type,
                               a.root, comm)
                 : MPI_Igatherv(a.in, a.in_counts[a.rank], a.in_type, a.out, a.out_counts, a.out_places, a.out_type,
                                a.root, comm, request);
    case Collective::scatter:
      return now ? MPI_Scatter(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root, comm)
                 : MPI_Iscatter(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, a.root, comm, request);
    case Collective::scatterv:
      return now ? MPI_Scatterv(a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts[a.rank], a.out_type,
                                a.root, comm)
                 : MPI_Iscatterv(a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts[a.rank], a.out_type,
                                 a.root, comm, request);
    case Collective::alltoall:
      return now ? MPI_Alltoall(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, comm)
                 : MPI_Ialltoall(a.in, a.in_count, a.in_type, a.out, a.out_count, a.out_type, comm, request);
    default:
      return now ? MPI_Alltoallv(a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts, a.out_places,
                                 a.out_type, comm)
                 : MPI_Ialltoallv(a.in, a.in_counts, a.in_places, a.in_type, a.out, a.out_counts, a.out_places,
                                  a.out_type, comm, request);
  }
}

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

Outcome make_call(const Case& call, const Sides& sides, MPI_Comm* comm, int rank, bool frees) {
  std::vector<Outcome> all;
  for (int i = 0; i < call.twice; ++i) all.push_back(buffers_of(call, sides, rank));
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
                                 call.op.op,
                                 rank};
    MPI_Request* const request = call.non_blocking ? &requests[i] : nullptr;
    (combines(call.collective) ? call_reduction : call_movement)(call, arguments, *comm, request);
  }
  if (frees) MPI_Comm_free(comm);
  for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
    int done = call.test ? 0 : 1;
    while (done == 0) MPI_Test(&*request, &done, MPI_STATUS_IGNORE);
    MPI_Wait(&*request, MPI_STATUS_IGNORE);
  }
  return all.back();
}

}  // namespace

const char* name(Collective collective) { return kNames[static_cast<int>(collective)]; }

std::string Case::text() const {
  std::string text = std::string(non_blocking ? "i" : "") + name(collective) + " of " + std::to_string(count) + " x " +
                     basic.name + " (shape " + std::to_string(shape) + ")";
  if (combines(collective)) text += ", op " + op.name;
  if (has_root(collective)) text += ", root " + std::to_string(root);
  for (const int each : counts) text += " " + std::to_string(each);
  return text + (in_place ? ", in place" : "") + (twice > 1 ? ", two in flight" : "");
}

bool is_torii_request(const Case& call) {
  if (!call.non_blocking || call.user == 2) return false;
  switch (call.collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::allgather:
    case Collective::reduce:
    case Collective::reduce_scatter_block:
      return true;
    default:
      return call.collective == Collective::allreduce && call.op.op != MPI_MAX && call.op.op != MPI_MIN;
  }
}

Case draw_case(Random& random, int ranks) {
  Case call;
  call.collective = static_cast<Collective>(draw(random, 0, kCollectives - 1));
  call.basic = basics()[random() % basics().size()];
  call.root = draw(random, 0, ranks - 1);
  call.count = draw_count(random);
  call.in_place = may_be_in_place(call.collective) && draw(random, 0, 2) == 0;
  call.non_blocking = draw(random, 0, 2) == 0;
  call.twice = call.non_blocking ? draw(random, 1, 2) : 1;
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
  // libnbc's own buffers are too short for elements that begin behind their place; torii's are not.
  if (call.shape == 4 && !is_torii_request(call)) call.non_blocking = false;
  if (has_counts(call.collective)) {
    // In place two ranks exchange as much as each other, and here a rank sends the same to all.
    const bool equal = draw(random, 0, 1) == 0 || (call.collective == Collective::alltoallv && call.in_place);
    for (int rank = 0; rank < ranks; ++rank) call.counts.push_back(equal ? call.count : draw(random, 0, 9));
  }
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
  blocking.non_blocking = false;
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
