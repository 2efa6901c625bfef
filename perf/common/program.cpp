// SPDX-License-Identifier: Apache-2.0
// The frame of the perf programs, over nlohmann's JSON.
#include "perf/common/program.hpp"

#include <torii/torii.h>

#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "perf/common/failure.hpp"
#include "perf/common/host.hpp"
#include "perf/common/job.hpp"
#include "perf/common/names.hpp"
#include "perf/common/options.hpp"
#include "runtime/base/numbers.hpp"

namespace torii::perf {
bool parse_command_line(const CommandLine& app, int argc, char** argv, const std::string& example,
                        const std::string& version, bool prints) {
  app.set_version("torii " + version);
  app.set_examples(example);
  try {
    return app.parse(argc, argv, prints);
  } catch (const Error& error) {
    throw Failure(kBadCommandLine, std::string(error.what()) + "; --help lists the flags");
  }
}

bool parse_command_line(const CommandLine& app, int argc, char** argv, const std::string& example, bool prints) {
  return parse_command_line(app, argc, argv, example, torii_version(), prints);
}

void SizeRange::add_flags(const CommandLine& app) {
  app.add_option("-b", begin_, "least size, with K, M or G (1024)").show_default();
  app.add_option("-e", end_, "greatest size").show_default();
  app.add_option("-f", factor_, "factor from one size to the next")
      .range(std::size_t{2}, std::size_t{1} << 20)
      .show_default();
}

void SizeRange::read(std::size_t most_bytes) {
  begin_bytes_ = parse_size("-b", begin_);
  end_bytes_ = parse_size("-e", end_);
  if (end_bytes_ < begin_bytes_ || end_bytes_ > most_bytes) {
    throw Failure(kBadCommandLine, "-e " + end_ + " must be from -b " + begin_ + " to " + bytes_text(most_bytes));
  }
}

std::vector<std::size_t> SizeRange::sizes() const {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = begin_bytes_; bytes <= end_bytes_; bytes *= factor_) sizes.push_back(bytes);
  return sizes;
}

JsonLines::JsonLines(const std::string& path, Output::Mode mode)
    : output_(path, mode), table_(output_.is_stdout() ? stderr : stdout) {}

void JsonLines::add(nlohmann::ordered_json json) {
  json["host"] = host();
  json["commit"] = commit();
  json["version"] = torii_version();
  output_.write(json.dump() + "\n");
}

void read_json_lines(const std::string& path, const std::function<void(const nlohmann::ordered_json&)>& read) {
  std::ifstream file(path);
  if (!file) throw Failure(kBadCommandLine, "cannot read '" + path + "'");
  int number = 0;
  const auto refuse = [&](const std::string& what) {
    constexpr size_t kBytesMax = 500;
    const std::string cut = what.size() > kBytesMax ? "... (" + std::to_string(what.size()) + " bytes)" : "";
    throw Failure(kBadCommandLine, path + ":" + std::to_string(number) + ": " + what.substr(0, kBytesMax) + cut);
  };
  // Rows are 4 deep. To print a value takes stack for each level.
  const auto check_depth = [](int depth, nlohmann::ordered_json::parse_event_t, const nlohmann::ordered_json&) {
    constexpr int kNestingMax = 16;
    if (depth <= kNestingMax) return true;
    throw Failure(kBadCommandLine, "a value is nested more than " + std::to_string(kNestingMax) + " deep");
  };
  for (std::string line; std::getline(file, line);) {
    ++number;
    try {
      read(nlohmann::ordered_json::parse(line, check_depth));
    } catch (const nlohmann::json::exception& error) {
      refuse(error.what());
    } catch (const Failure& error) {
      refuse(error.what());
    }
  }
}

void start_asked_ranks(int ranks, int argc, char** argv) {
  if (ranks == 0) return;
  if (inside_job()) throw Failure(kBadCommandLine, "--ranks inside a job: the launcher has started the ranks");
  start_ranks(ranks, arguments_for_ranks(argc, argv));
}

int run_program(char** argv, const std::function<int()>& work) noexcept {
  try {
    const int code = work();
    Output("-").write("");
    return code;
  } catch (const std::exception& error) {
    const int code = exit_code_of(error);
    if (code != kBadCommandLine || speaks()) std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return code;
  }
}

}  // namespace torii::perf
