// SPDX-License-Identifier: Apache-2.0
// Every switch and size a user can set, in one typed table: name, default, what is accepted, where the value came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/determinism.hpp"
#include "runtime/base/log.hpp"

namespace torii {

/// How a rank waits for its peers; `automatic` goes from spin to yield to sleep by the CPUs the process may use.
enum class WaitMode : std::uint8_t { automatic, spin, yield, sleep, shared };
enum class Switch : std::uint8_t { automatic, on, off };
/// Where a value came from: the table, the environment (TORII_<NAME>) or the program (an override line).
enum class Origin : std::uint8_t { fallback, environment, option };

std::string_view name(WaitMode mode) noexcept;
std::string_view name(Switch value) noexcept;
std::string_view name(Origin origin) noexcept;

/// One row as torii-info prints it.
struct SettingView {
  std::string name;      ///< the environment variable, e.g. "TORII_ENGINES"
  std::string value;     ///< in the form that can be set again; a secret is shown as "(set)"
  std::string fallback;  ///< the default
  std::string accepts;   ///< e.g. "a whole number from 1 to 16"
  std::string help;
  Origin origin = Origin::fallback;
};

inline constexpr std::size_t kNodeBytesMax = 63;

/// The settings of a context. Sizes are in bytes, times in seconds; 0 means `auto` where the table says so.
struct Settings {
  int engines = 4;
  std::size_t segment_bytes = 0;
  std::string algorithm = "auto";
  std::string topology = "auto";
  std::string rank_map;  ///< a path, or "list:...", as read_rank_map() reads it
  std::string transport = "auto";
  std::string node;  ///< ranks of different names share no memory; at most kNodeBytesMax bytes
  std::string provider = "auto";
  Determinism determinism = Determinism::run;
  bool wide_wire = false;  ///< WIRE=f32
  std::string isa = "auto";
  double timeout_s = 30;
  LogLevel log = LogLevel::error;
  int channels = 2;
  int slots = 0;
  int window = 0;
  std::string tune_file;
  std::size_t arena_bytes = std::size_t{64} << 30;
  WaitMode wait = WaitMode::automatic;
  bool hop = true;  ///< a waiting thread may leave a CPU on which another rank is
  Switch cross_memory = Switch::automatic;
  int helpers = 0;
  std::string helper_cpus;  ///< of progress threads, as parse_cpu_list() reads it; empty: those of their maker
  bool insecure = false;
  std::string job_token;
  std::string rendezvous;  ///< empty, or "file:PATH"
  std::string interfaces;  ///< as select_interfaces() reads it
  int port_low = 0;        ///< 0: any port
  int port_high = 0;

  /// The names that ALGORITHM accepts beside `auto`; without any, ALGORITHM accepts every word.
  std::span<const std::string_view> algorithms;
  std::vector<Origin> origins;        ///< one per row of the table
  std::vector<std::string> warnings;  ///< sentences about unknown TORII_ variables; join() logs them on rank 0

  /// Table defaults, overridden by TORII_<NAME> variables, overridden by `overrides`: lines "NAME=value" (empty lines
  /// are skipped, a TORII_ before the name is allowed). `environment` ends with nullptr; nullptr alone stands for the
  /// process's own. `algorithms` must outlive the settings; the catalogue has them (algorithm_names()).
  /// Throws Error{invalid_argument} that names variable, value and what would be right.
  static Settings load(std::string_view overrides = {}, const char* const* environment = nullptr,
                       std::span<const std::string_view> algorithms = {});

  /// All rows in the order of the table.
  std::vector<SettingView> list() const;
  /// The settings that must be equal on all ranks, as "NAME=value" lines; equal settings give equal text.
  std::string digest_text() const;
};

}  // namespace torii
