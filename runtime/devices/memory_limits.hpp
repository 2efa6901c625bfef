// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take, and what limits it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace torii {

/// What is left below one limit.
struct MemoryLeft {
  std::size_t bytes = SIZE_MAX;
  std::size_t limit_bytes = SIZE_MAX;
  std::string limit;  ///< its name in an error, as in "the machine's memory"
};

/// Reads the kernel's files. Thread-safe; the control group is looked up once.
class MemoryLimits {
 public:
  /// `root` is where /proc and the mounted control groups are.
  explicit MemoryLimits(std::filesystem::path root = "/");

  /// Memory and swap that the machine could still give; nothing where it does not tell.
  std::optional<MemoryLeft> machine() const;
  /// The least that is left to the control group of this process or one above it, of version 1 or 2: pages of files can
  /// be dropped, and what may be swapped out counts. Nothing where no group has a limit.
  std::optional<MemoryLeft> group() const;
  /// With vm.overcommit_memory=2: what may still be committed.
  std::optional<MemoryLeft> commit() const;
  /// The least of all.
  MemoryLeft left() const;

 private:
  static std::optional<MemoryLeft> left_in(const std::filesystem::path& group, std::size_t free_swap_bytes);

  std::filesystem::path root_;
  std::vector<std::filesystem::path> groups_;  ///< folders, from that of this process up to the mounted one
};

/// Of this process on this machine.
const MemoryLimits& memory_limits();

}  // namespace torii
