// SPDX-License-Identifier: Apache-2.0
// Writes down the blocking collectives of an MPI program, for perf/varied to make them again. Preloaded into each rank:
//   mpirun.openmpi -n 4 -x LD_PRELOAD=torii_record_openmpi.so -x TORII_RECORD=calls program
// Each rank writes calls.RANK, of which perf/merge_calls makes one file. A line is
//   MEMBERS COLLECTIVE TYPE OP ROOT COUNTS [in_place]
// Compiled against each MPI, as mpi_module.cpp. C programs call MPI_Bcast; Fortran's bindings call PMPI_Bcast.
#include <map>
#include <string>
#include <vector>

#include "perf/mpi_preload.hpp"

namespace {

using torii::perf::own;

/// The file of this rank, and the communicators that it has met. Programs of one thread only.
class Recorder {
 public:
  static Recorder& get() {
    static Recorder recorder;
    return recorder;
  }

  /// `counts`: "8" or "1,2,3".
  void add(MPI_Comm comm, const char* collective, const std::string& type_and_op, int root, const std::string& counts,
           bool in_place) {
    if (file_ == nullptr && !open()) return;
    const std::string& members = members_of(comm);
    if (members.empty()) return;
    std::fprintf(file_, "%s %s %s %s %s%s\n", members.c_str(), collective, type_and_op.c_str(),
                 root < 0 ? "-" : std::to_string(root).c_str(), counts.c_str(), in_place ? " in_place" : "");
  }
  void leave_out() { ++left_out_; }

 private:
  Recorder() = default;
  ~Recorder() {
    if (file_ == nullptr) return;
    if (left_out_ > 0) std::fprintf(file_, "# left out: %ld calls of other types or operations\n", left_out_);
    std::fclose(file_);
  }

  bool open() {
    file_ = torii::perf::file_of_rank("TORII_RECORD");
    return file_ != nullptr;
  }

  /// The ranks of a communicator's members, in its order; empty: it joins two groups.
  const std::string& members_of(MPI_Comm comm) {
    const auto found = comms_.find(comm);
    int result = MPI_UNEQUAL;
    // A handle may be used again for another communicator.
    if (found != comms_.end()) {
      MPI_Group group;
      MPI_Comm_group(comm, &group);
      MPI_Group_compare(group, found->second.group, &result);
      MPI_Group_free(&group);
      if (result == MPI_IDENT) return found->second.text;
    }
    Known& known = comms_[comm];
    known.text.clear();
    int is_inter = 0;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0) return known.text;
    MPI_Group all;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(comm, &known.group);
    int size = 0;
    MPI_Group_size(known.group, &size);
    std::vector<int> mine(static_cast<std::size_t>(size)), theirs(mine);
    for (int member = 0; member < size; ++member) mine[static_cast<std::size_t>(member)] = member;
    MPI_Group_translate_ranks(known.group, size, mine.data(), all, theirs.data());
    MPI_Group_free(&all);
    for (const int rank : theirs) known.text += (known.text.empty() ? "" : ",") + std::to_string(rank);
    return known.text;
  }

  struct Known {
    MPI_Group group;
    std::string text;
  };
  std::FILE* file_ = nullptr;
  long left_out_ = 0;
  std::map<MPI_Comm, Known> comms_;
};

std::size_t type_bytes(MPI_Datatype type) {
  int bytes = 0;
  MPI_Type_size(type, &bytes);
  return static_cast<std::size_t>(bytes);
}

std::string bytes_text(std::size_t count, MPI_Datatype type) { return std::to_string(count * type_bytes(type)); }

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

/// Type and operation of a reduction, "f64 sum"; empty for types and operations that are replayed by none. Elements of
/// a complex number count as two.
std::string reduction_text(MPI_Datatype type, MPI_Op op, std::size_t& count) {
  const char* const op_name = op == MPI_SUM ? "sum" : op == MPI_MIN ? "min" : op == MPI_MAX ? "max" : nullptr;
  if (op_name == nullptr) return {};
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Type_get_name(type, name, &length);
  const std::string text = name;
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const bool is_complex = has("COMPLEX");
  const std::size_t bytes = type_bytes(type) / (is_complex ? 2 : 1);
  if (is_complex) count *= 2;
  const bool is_real = is_complex || has("DOUBLE") || has("FLOAT") || has("REAL");
  const bool is_integer = has("INT") || has("LONG");
  const char* element = nullptr;
  if (is_real) element = bytes == 8 ? "f64" : bytes == 4 ? "f32" : nullptr;
  if (!is_real && is_integer) element = bytes == 8 ? "i64" : bytes == 4 ? "i32" : nullptr;
  return element == nullptr ? std::string() : std::string(element) + " " + op_name;
}

void note_reduction(const char* collective, const void* input, int count, MPI_Datatype type, MPI_Op op, int root,
                    MPI_Comm comm) {
  std::size_t elements = static_cast<std::size_t>(count);
  const std::string text = reduction_text(type, op, elements);
  if (text.empty()) return Recorder::get().leave_out();
  Recorder::get().add(comm, collective, text, root, std::to_string(elements), input == MPI_IN_PLACE);
}

void note_data(const char* collective, std::size_t count, MPI_Datatype type, int root, MPI_Comm comm) {
  Recorder::get().add(comm, collective, "u8 -", root, bytes_text(count, type), false);
}

void note_lengths(const char* collective, const int* counts, MPI_Datatype type, int root, MPI_Comm comm) {
  std::string text;
  for (int member = 0; member < size_of(comm); ++member) {
    text += (text.empty() ? "" : ",") + bytes_text(static_cast<std::size_t>(counts[member]), type);
  }
  Recorder::get().add(comm, collective, "u8 -", root, text, false);
}

/// Lengths that only the root knows: the others write "?".
void note_rooted_lengths(const char* collective, const int* counts, MPI_Datatype type, int root, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank == root) return note_lengths(collective, counts, type, root, comm);
  Recorder::get().add(comm, collective, "u8 -", root, "?", false);
}

}  // namespace

// The functions that programs call, MPI_NAME, and those that Fortran's bindings call, PMPI_NAME.
#define RECORDED(name, parameters, arguments, note)          \
  extern "C" int P##name parameters {                        \
    static auto* const run = own<int parameters>("P" #name); \
    note;                                                    \
    return run arguments;                                    \
  }                                                          \
  extern "C" int name parameters { return P##name arguments; }

RECORDED(MPI_Barrier, (MPI_Comm comm), (comm), Recorder::get().add(comm, "barrier", "- -", -1, "-", false))
RECORDED(MPI_Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
         (buffer, count, type, root, comm), note_data("broadcast", static_cast<std::size_t>(count), type, root, comm))
RECORDED(MPI_Reduce,
         (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
         (input, result, count, type, op, root, comm), note_reduction("reduce", input, count, type, op, root, comm))
RECORDED(MPI_Allreduce, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (input, result, count, type, op, comm), note_reduction("allreduce", input, count, type, op, -1, comm))
RECORDED(MPI_Scan, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (input, result, count, type, op, comm), note_reduction("scan", input, count, type, op, -1, comm))
RECORDED(MPI_Exscan, (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (input, result, count, type, op, comm), note_reduction("exscan", input, count, type, op, -1, comm))
RECORDED(MPI_Reduce_scatter_block,
         (const void* input, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
         (input, result, count, type, op, comm), note_reduction("reduce_scatter", result, count, type, op, -1, comm))
RECORDED(MPI_Allgather,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
          MPI_Comm comm),
         (input, input_count, input_type, result, count, type, comm),
         note_data("all_gather", static_cast<std::size_t>(count), type, -1, comm))
RECORDED(MPI_Alltoall,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
          MPI_Comm comm),
         (input, input_count, input_type, result, count, type, comm),
         note_data("alltoall", static_cast<std::size_t>(count), type, -1, comm))
RECORDED(MPI_Gather,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
          int root, MPI_Comm comm),
         (input, input_count, input_type, result, count, type, root, comm),
         note_data("gather", static_cast<std::size_t>(input == MPI_IN_PLACE ? count : input_count),
                   input == MPI_IN_PLACE ? type : input_type, root, comm))
RECORDED(MPI_Scatter,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, int count, MPI_Datatype type,
          int root, MPI_Comm comm),
         (input, input_count, input_type, result, count, type, root, comm),
         note_data("scatter", static_cast<std::size_t>(result == MPI_IN_PLACE ? input_count : count),
                   result == MPI_IN_PLACE ? input_type : type, root, comm))
RECORDED(MPI_Allgatherv,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, const int* counts,
          const int* places, MPI_Datatype type, MPI_Comm comm),
         (input, input_count, input_type, result, counts, places, type, comm),
         note_lengths("all_gather", counts, type, -1, comm))
RECORDED(MPI_Alltoallv,
         (const void* input, const int* input_counts, const int* input_places, MPI_Datatype input_type, void* result,
          const int* counts, const int* places, MPI_Datatype type, MPI_Comm comm),
         (input, input_counts, input_places, input_type, result, counts, places, type, comm),
         note_lengths("alltoall", counts, type, -1, comm))
RECORDED(MPI_Gatherv,
         (const void* input, int input_count, MPI_Datatype input_type, void* result, const int* counts,
          const int* places, MPI_Datatype type, int root, MPI_Comm comm),
         (input, input_count, input_type, result, counts, places, type, root, comm),
         note_rooted_lengths("gather", counts, type, root, comm))
RECORDED(MPI_Scatterv,
         (const void* input, const int* counts, const int* places, MPI_Datatype input_type, void* result, int count,
          MPI_Datatype type, int root, MPI_Comm comm),
         (input, counts, places, input_type, result, count, type, root, comm),
         note_rooted_lengths("scatter", counts, input_type, root, comm))
