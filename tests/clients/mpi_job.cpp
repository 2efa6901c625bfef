// SPDX-License-Identifier: Apache-2.0
// Starts mpirun and reads the component's counters.
#include "tests/clients/mpi_job.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/support/places.hpp"

namespace torii::tests {

std::string components() { return build_dir() + "/lib/torii/openmpi"; }
std::string source(const std::string& name) { return std::filesystem::path(source_dir()) / "tests/clients" / name; }

void add(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

Outcome mpirun(const Job& job) {
  Words words = {TORII_TEST_MPIRUN, "--allow-run-as-root", "--oversubscribe"};
  if (job.with_torii) add(words, {"--mca", "coll_torii_enable", "1"});
  if (!job.delay.empty()) add(words, {"--mca", "coll_torii_delay", job.delay});
  add(words, job.options);
  add(words, {"-n", std::to_string(job.ranks)});
  add(words, job.command);
  Words environment = {"OMPI_MCA_mca_base_component_path=" + components() + ":SYSTEM_DEFAULT"};
  add(environment, job.environment);  // the last of a name holds
  return Process(words, environment).wait(job.deadline_s);
}

std::map<std::string, Range> ranges(const std::string& output, const std::string& what) {
  std::map<std::string, Range> found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("coll/torii: " + what + " ");
    if (at == std::string::npos) continue;
    std::istringstream fields(line.substr(at + 12 + what.size()));
    for (std::string field; fields >> field;) {
      const std::size_t equal = field.find('=');
      const long count = std::strtol(field.c_str() + equal + 1, nullptr, 10);
      Range& range = found.emplace(field.substr(0, equal), Range{count, count}).first->second;
      range = {std::min(range.least, count), std::max(range.most, count)};
    }
  }
  return found;
}

std::map<std::string, long> counts(const std::string& output, const std::string& what) {
  std::map<std::string, long> least;
  for (const auto& [name, range] : ranges(output, what)) least.emplace(name, range.least);
  return least;
}

const Words kOperations = {"allgather",
                           "allgatherv",
                           "allreduce",
                           "alltoall",
                           "alltoallv",
                           "alltoallw",
                           "barrier",
                           "bcast",
                           "exscan",
                           "gather",
                           "gatherv",
                           "reduce",
                           "scan",
                           "scatter",
                           "scatterv",
                           "reduce_scatter",
                           "reduce_scatter_block"};

}  // namespace torii::tests
