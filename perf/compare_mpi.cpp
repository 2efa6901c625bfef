// SPDX-License-Identifier: Apache-2.0
// compare_mpi.openmpi and compare_mpi.mpich: started by that MPI's mpirun, times MPI's collectives and torii's in one
// process, in alternating blocks, on the same buffers. torii joins through MPI_Allgather.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"
#include "perf/compare_cell.hpp"
#include "perf/mpi_calls.hpp"

namespace torii::perf {
namespace {

struct CompareOptions {
  std::vector<torii_collective> collectives;
  std::vector<size_t> sizes;
  std::vector<Timing> timings;
  std::string json, setting, command;
  double block_ms = 20;
};

/// Returns false for --help and --version, which rank 0 has printed.
bool parse(int argc, char** argv, bool speaks, CompareOptions& options) {
  std::string collectives = "allreduce", sizes = "8,1K,8K,64K,512K,4M,32M", timings = "isolated,loop";
  const CommandLine app("Times MPI's collectives and torii's side by side (f32, sum).");
  app.add_option("--collective", collectives,
                 "a list of allreduce broadcast reduce barrier all_gather reduce_scatter alltoall scatter gather scan "
                 "exscan")
      .show_default();
  app.add_option("--sizes", sizes, "a list of sizes with K, M or G (1024)").show_default();
  app.add_option("--timing", timings, "a list of isolated and loop").show_default();
  app.add_option("--block-ms", options.block_ms, "time of one of the 5 blocks of each way")
      .range(0.1, 1e4)
      .show_default();
  app.add_option("--json", options.json, "append one JSON object per line to this file");
  app.add_option("--setting", options.setting, "what to call MPI's setting in the JSON");
  app.add_option("--command", options.command, "the command line to note in the JSON");
  const char* example = "mpirun.openmpi -n 2 compare_mpi.openmpi --sizes 8,64K,4M";
  const std::string version = torii_version() + (", " + Mpi::version());
  if (!parse_command_line(app, argc, argv, example, version, speaks)) return false;
  for (const std::string& word : split_list(collectives)) {
    const auto collective = parse_collective(word);
    if (!collective) throw Failure(kBadCommandLine, "--collective '" + word + "' is unknown; --help lists them");
    options.collectives.push_back(*collective);
  }
  for (const std::string& word : split_list(sizes)) {
    options.sizes.push_back(parse_size("--sizes", word));
    if (options.sizes.back() > size_t{1} << 32) {
      throw Failure(kBadCommandLine, "--sizes '" + word + "' is more than an MPI call of this comparison takes (4G)");
    }
  }
  for (const std::string& word : split_list(timings)) {
    if (word != "isolated" && word != "loop") {
      throw Failure(kBadCommandLine, "--timing '" + word + "' is unknown: use isolated, loop or both");
    }
    options.timings.push_back(word == "loop" ? Timing::loop : Timing::isolated);
  }
  return true;
}

void put_times(nlohmann::ordered_json& json, const std::string& prefix, const Statistics& time) {
  json[prefix + "_us"] = time.median_us;
  json[prefix + "_us_mad"] = time.mad_us;
  json[prefix + "_us_p99"] = time.p99_us;
  json[prefix + "_calls"] = time.calls;
}

/// Left out where there is none.
void put_limit(nlohmann::ordered_json& json, const std::string& prefix, const Limit& limit) {
  if (limit.name.empty()) return;
  put_times(json, prefix, limit.time);
  json[prefix + "_loop"] = limit.name;
}

/// How many times faster torii is.
double ratio(const Statistics& mpi, const Statistics& torii) {
  return torii.median_us > 0 ? mpi.median_us / torii.median_us : 0;
}

class CompareReport {
 public:
  /// Only rank 0 is given a file.
  explicit CompareReport(const CompareOptions& options)
      : options_(options), lines_(options.json, Output::Mode::append) {}

  void header(int ranks) const {
    std::printf("# %s, setting '%s', %d ranks, torii %s commit %s, %s\n", Mpi::version().c_str(),
                options_.setting.c_str(), ranks, torii_version(), commit(), host().c_str());
    std::printf("# %14s %9s %10s %12s %13s %16s %14s %8s %8s %8s %12s %12s %7s %20s\n", "collective", "timing",
                "size(B)", "MPI(us)", "malloc(us)", "allocated(us)", "adopted(us)", "ratio", "ratio", "ratio",
                "limit(us)", "mapped(us)", "#wrong", "algorithm");
    std::fflush(stdout);
  }

  void add(const CellRequest& request, const CellResult& result, int ranks) {
    std::printf("  %14s %9s %10zu %12.3f %13.3f %16.3f %14.3f %8.2f %8.2f %8.2f %12.3f %12.3f %7ld %20s\n",
                name(request.collective), name(request.timing), result.bytes, result.mpi.median_us,
                result.torii_malloc.median_us, result.torii_allocated.median_us, result.torii_adopted.median_us,
                ratio(result.mpi, result.torii_malloc), ratio(result.mpi, result.torii_allocated),
                ratio(result.mpi, result.torii_adopted), result.limit_private.time.median_us,
                result.limit_mapped.time.median_us, result.wrong_mpi + result.wrong_torii + result.wrong_limits,
                result.algorithm.c_str());
    std::fflush(stdout);
    if (!lines_.wanted()) return;
    nlohmann::ordered_json json;
    json["collective"] = name(request.collective);
    json["mpi"] = Mpi::version();
    json["setting"] = options_.setting;
    json["ranks"] = ranks;
    json["bytes"] = result.bytes;
    json["type"] = "f32";
    json["op"] = combines(request.collective) ? "sum" : "none";
    json["timing"] = name(request.timing);
    put_times(json, "mpi", result.mpi);
    put_times(json, "torii_malloc", result.torii_malloc);
    put_times(json, "torii_allocated", result.torii_allocated);
    put_times(json, "torii_adopted", result.torii_adopted);
    json["ratio_malloc"] = ratio(result.mpi, result.torii_malloc);
    json["ratio_allocated"] = ratio(result.mpi, result.torii_allocated);
    json["ratio_adopted"] = ratio(result.mpi, result.torii_adopted);
    put_limit(json, "limit_private", result.limit_private);
    put_limit(json, "limit_mapped", result.limit_mapped);
    json["algorithm"] = result.algorithm;
    json["segment_bytes"] = result.segment_bytes;
    json["engines"] = result.engines;
    json["wrong_mpi"] = result.wrong_mpi;
    json["wrong_torii"] = result.wrong_torii;
    json["wrong_limits"] = result.wrong_limits;
    json["command"] = options_.command;
    lines_.add(std::move(json));
  }

 private:
  CompareOptions options_;
  JsonLines lines_;
};

int compare(const CompareOptions& options, const Mpi& mpi) {
  CompareReport report(mpi.rank() == 0 ? options : CompareOptions{});
  Job job("", Mpi::exchange, mpi.rank(), mpi.ranks());
  Meeting meeting(job);
  if (!meeting.shared()) throw Failure(kNotPossible, "no page that all ranks map: the barrier would be torii's own");
  LimitMeans means(job);
  if (job.rank() == 0) report.header(job.ranks());
  int64_t wrong = 0;
  for (const torii_collective collective : options.collectives) {
    for (const Timing timing : options.timings) {
      for (const size_t bytes : options.sizes) {
        const CellRequest request{collective, timing, bytes, options.block_ms * 1e6};
        const CellResult result = compare_cell(job, meeting, means, request);
        wrong += result.wrong_mpi + result.wrong_torii + result.wrong_limits;
        if (job.rank() == 0) report.add(request, result, job.ranks());
        if (collective == TORII_BARRIER) break;
      }
    }
  }
  return wrong == 0 ? kOk : kWrongData;
}

}  // namespace
}  // namespace torii::perf

int main(int argc, char** argv) {
  using namespace torii::perf;
  Mpi mpi(argc, argv);
  try {
    CompareOptions options;
    if (!parse(argc, argv, mpi.rank() == 0, options)) return kOk;
    const int code = compare(options, mpi);
    torii::Output("-").write("");
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", mpi.rank(), error.what());
    Mpi::abort(exit_code_of(error));
  }
}
