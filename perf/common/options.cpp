// SPDX-License-Identifier: Apache-2.0
// Flags of the perf binaries.
#include "perf/common/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>

#include "perf/common/failure.hpp"
#include "perf/common/names.hpp"
#include "perf/common/program.hpp"

namespace torii::perf {
namespace {

/// A flag that is handed to the library as the setting of the same name.
struct Setting {
  const char* flag;
  const char* name;
  const char* help;
};
constexpr std::array kSettings = {
    Setting{"--algorithm", "ALGORITHM", "auto, or a name that torii-info lists"},
    Setting{"--engines", "ENGINES", "engines of the transport, 1..16"},
    Setting{"--segment", "SEGMENT", "bytes of a segment, with K or M"},
    Setting{"--transport", "TRANSPORT", "auto, shared_memory, libfabric or ucx"},
    Setting{"--topology", "TOPOLOGY", "node, node:8*4, torus:4x4x4, mesh:8x8, torus:3x3*2 or tree:FILE"},
    Setting{"--determinism", "DETERMINISM", "run, canonical"},
    Setting{"--wire", "WIRE", "type, f32: how 16-bit floats travel"},
    Setting{"--isa", "ISA", "instruction set of the kernels"},
    Setting{"--timeout", "TIMEOUT", "seconds without progress after which a call fails"},
};

/// What the command line fills; texts are turned into values afterwards, so that every message names the flag and the
/// value.
struct Raw {
  std::string begin = "8", end = "32M", step, types = "f32", ops = "sum", memory = "malloc", timing = "isolated";
  std::array<std::string, kSettings.size()> settings;
  int check = 1;
};

template <typename T>
std::vector<T> parse_list(const std::string& flag, const std::string& text, std::vector<T> all,
                          const std::function<std::optional<T>(std::string_view)>& parse, const std::string& choices) {
  if (text == "all") return all;
  std::vector<T> values;
  std::istringstream list(text);
  for (std::string word; std::getline(list, word, ',');) {
    const std::optional<T> value = parse(word);
    if (!value) {
      throw Failure(kBadCommandLine, fmt::format("{} '{}' is unknown: use all or a list of {}", flag, word, choices));
    }
    values.push_back(*value);
  }
  if (values.empty()) throw Failure(kBadCommandLine, flag + " is empty: use all or a list of " + choices);
  return values;
}

void read_types_and_ops(const Raw& raw, Options& options) {
  std::vector<torii_type> types;
  std::string type_names;
  for (const TypeInfo& type : all_types()) {
    types.push_back(type.type);
    type_names.append(type_names.empty() ? "" : " ").append(type.name);
  }
  std::vector<torii_op> ops;
  std::string op_names;
  for (const OpInfo& op : all_ops()) {
    ops.push_back(op.op);
    op_names.append(op_names.empty() ? "" : " ").append(op.name);
  }
  options.types = parse_list<torii_type>("-d", raw.types, types, parse_type, type_names);
  options.ops = parse_list<torii_op>("-o", raw.ops, ops, parse_op, op_names);
  if (!combines(options.collective)) return;
  for (const torii_type type : options.types) {
    for (const torii_op op : options.ops) {
      if (is_defined(options.collective, op, type)) return;
    }
  }
  throw Failure(kBadCommandLine, "-o " + raw.ops + " is not defined for -d " + raw.types);
}

void read_sizes(const Raw& raw, Options& options) {
  options.begin_bytes = parse_size("-b", raw.begin);
  options.end_bytes = parse_size("-e", raw.end);
  if (!raw.step.empty()) options.step_bytes = parse_size("-i", raw.step);
  if (options.end_bytes < options.begin_bytes) {
    throw Failure(kBadCommandLine, "-e " + raw.end + " is smaller than -b " + raw.begin);
  }
  // Room for every rank's block, two copies of the input and sums of these in signed 64 bits.
  if (options.end_bytes > (size_t{1} << 48)) {
    throw Failure(kBadCommandLine, "-e " + raw.end + " overflows the count: sizes end at 2^48 bytes");
  }
}

std::optional<Memory> parse_memory(std::string_view text) {
  for (const Memory memory : {Memory::malloced, Memory::allocated, Memory::adopted}) {
    if (text == name(memory)) return memory;
  }
  return std::nullopt;
}

void read_words(const Raw& raw, Options& options) {
  const auto memory = parse_memory(raw.memory);
  if (!memory) {
    throw Failure(kBadCommandLine, "--memory '" + raw.memory + "' is unknown: use malloc, allocated or adopted");
  }
  if (raw.timing != "isolated" && raw.timing != "loop") {
    throw Failure(kBadCommandLine, "--timing '" + raw.timing + "' is unknown: use isolated or loop");
  }
  if (options.leaves != 0 && options.in_place) {
    throw Failure(kBadCommandLine,
                  "--in-place and --leaves exclude each other: a rank may have several leaves, or none");
  }
  if (options.json == "-" && options.csv == "-") {
    throw Failure(kBadCommandLine, "--json - and --csv - both want stdout: give one of them a file");
  }
  options.memory = *memory;
  options.timing = raw.timing == "isolated" ? Timing::isolated : Timing::loop;
  options.check = raw.check != 0;
}

/// The value of a setting for the report: flag, else environment, else what the library takes by default.
std::string asked_setting(const std::string& flag_value, const char* variable, const char* otherwise) {
  if (!flag_value.empty()) return flag_value;
  const char* environment = std::getenv(variable);
  return environment != nullptr ? environment : otherwise;
}

void read_settings(const Raw& raw, Options& options) {
  for (size_t i = 0; i < kSettings.size(); ++i) {
    if (raw.settings[i].empty()) continue;
    options.settings += std::string(kSettings[i].name) + "=" + raw.settings[i] + "\n";
    if (kSettings[i].name == std::string_view("TOPOLOGY")) options.topology = raw.settings[i];
    if (kSettings[i].name == std::string_view("DETERMINISM")) options.determinism = raw.settings[i];
  }
  options.topology = asked_setting(options.topology, "TORII_TOPOLOGY", "auto");
  options.determinism = asked_setting(options.determinism, "TORII_DETERMINISM", "run");
}

void add_data_flags(const CommandLine& app, Raw& raw, Options& options) {
  app.add_option("-b", raw.begin, "least size, with K, M or G (1024)").show_default();
  app.add_option("-e", raw.end, "greatest size").show_default();
  const CommandLine::Option factor = app.add_option("-f", options.factor, "factor from one size to the next")
                                         .range(size_t{2}, size_t{1} << 20)
                                         .show_default();
  app.add_option("-i", raw.step, "bytes from one size to the next, instead of a factor").excludes(factor);
  app.add_option("-d", raw.types, "element types: a list with commas, or all").show_default();
  if (combines(options.collective)) {
    app.add_option("-o", raw.ops, "operations: a list with commas, or all").show_default();
  }
  if (has_root(options.collective)) {
    app.add_option("-r", options.root, "root rank").not_negative().show_default();
  }
  app.add_option("-c", raw.check, "check the data, 0 or 1").range(0, 1).show_default();
  app.add_option("--memory", raw.memory, "malloc, allocated (torii_allocate) or adopted (malloc, then torii_register)")
      .show_default();
  if (options.collective != TORII_BROADCAST) app.add_flag("--in-place", options.in_place, "input and result are one");
  if (combines(options.collective) && !is_prefix(options.collective)) {
    app.add_option("--leaves", options.leaves,
                   "so many leaves, dealt to the ranks in order; a leaf has the data of a rank")
        .range(size_t{1}, size_t{1} << 20);
  }
  if (is_personalised(options.collective)) {
    app.add_flag("--bytes-per-pair", options.bytes_per_pair,
                 "-b, -e and -i are what one rank has for another; the size reported stays that of all blocks");
  }
  app.add_flag("--hash", options.hash, "print the XXH3-64 of the result");
  app.add_option("--seed", options.seed, "seed of the data").show_default();
}

void add_common_flags(const CommandLine& app, Raw& raw, Options& options) {
  app.add_option("-n", options.iterations, "calls in each of the 5 timed blocks (default: as many as fit 20 ms)")
      .range(1, 1000000);
  app.add_option("-w", options.warm_up, "calls before the first block (at least 3)").range(0, 1000000).show_default();
  app.add_option("--timing", raw.timing, "isolated (a barrier before each call) or loop (back to back)").show_default();
  app.add_option("--ranks", options.ranks, "start so many ranks on this machine").range(1, 1024);
  app.add_option("--json", options.json, "write one JSON object per line to this file, - for stdout");
  app.add_option("--csv", options.csv, "write comma-separated values to this file, - for stdout");
  for (size_t i = 0; i < kSettings.size(); ++i) {
    app.add_option(kSettings[i].flag, raw.settings[i], kSettings[i].help);
  }
}

}  // namespace

bool parse_options(torii_collective collective, int argc, char** argv, Options& options) {
  Raw raw;
  options.collective = collective;
  const CommandLine app(std::string("Times torii's ") + name(collective) + " and checks its data." +
                        (collective == TORII_BARRIER
                             ? " With --late SECONDS it counts the CPU time of ranks that wait instead; "
                               "--late 1 --help lists the flags of that."
                             : ""));
  if (collective != TORII_BARRIER) add_data_flags(app, raw, options);
  add_common_flags(app, raw, options);
  const std::string program = argc > 0 ? std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1) : "perf";
  const std::string example =
      program + " --ranks 2 " + (collective == TORII_BARRIER ? "-n 1000" : "-b 8 -e 32M -f 4 --engines 4");
  if (!parse_command_line(app, argc, argv, example)) return false;
  if (collective == TORII_BARRIER) {
    options.begin_bytes = options.end_bytes = 0;
    options.in_place = false;
  } else {
    read_types_and_ops(raw, options);
    read_sizes(raw, options);
  }
  read_words(raw, options);
  read_settings(raw, options);
  return true;
}

std::vector<std::string> arguments_for_ranks(int argc, char** argv) {
  std::vector<std::string> kept;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--ranks") {
      ++i;
    } else if (argument.rfind("--ranks=", 0) != 0) {
      kept.push_back(argument);
    }
  }
  return kept;
}

const char* name(Memory memory) {
  switch (memory) {
    case Memory::malloced:
      return "malloc";
    case Memory::allocated:
      return "allocated";
    case Memory::shared:
      return "shared";
    case Memory::adopted:
      break;
  }
  return "adopted";
}
const char* name(Timing timing) { return timing == Timing::isolated ? "isolated" : "loop"; }

}  // namespace torii::perf
