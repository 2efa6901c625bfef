// SPDX-License-Identifier: Apache-2.0
// How much more memory this process can use, and which limit applies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace torii {

/// The memory that is left below one limit.
struct MemoryLeft {
  std::size_t bytes = SIZE_MAX;
  std::size_t limit_bytes = SIZE_MAX;
  std::string limit;  ///< the limit's name in an error, such as "the machine's memory"
};

/// Reads the kernel's files. Thread-safe; the control group is looked up once.
class MemoryLimits {
 public:
  /// `root` contains /proc and the mounts of control groups.
  explicit MemoryLimits(std::filesystem::path root = "/");

  /// The machine's free memory and swap; nothing if the kernel does not say.
  std::optional<MemoryLeft> machine() const;
  /// The least that is left in the control group of this process or a group around it, version 1 or 2. Pages of files
  /// and free swap count as available. Nothing if no group has a limit.
  std::optional<MemoryLeft> group() const;
  /// The memory that may still be committed; nothing unless vm.overcommit_memory=2.
  std::optional<MemoryLeft> commit() const;
  /// The least of the three.
  MemoryLeft left() const;

 private:
  static std::optional<MemoryLeft> left_in(const std::filesystem::path& group, std::size_t free_swap_bytes);

  std::filesystem::path root_;
  std::vector<std::filesystem::path> groups_;  ///< folders, this process's group first
};

/// The limits of this process.
const MemoryLimits& memory_limits();
/// memory_limits().left(), or what a simulation says.
MemoryLeft memory_left();
/// memory_left().bytes of at most 20 ms ago, and of less where little is left. Programs make many teams in a row, and
/// reading the kernel's files takes longer than the rest of making a team.
std::size_t memory_left_lately();

}  // namespace torii
