// SPDX-License-Identifier: Apache-2.0
// What differs between the process groups of PyTorch 1.13 and those of 2.x; no other file asks for the version.
// 1.13 hands out subclasses of c10d::ProcessGroup. In 2.x a ProcessGroup holds backends, subclasses of c10d::Backend.
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <optional>

namespace torii_torch {

#if TORCH_VERSION_MAJOR >= 2
using GroupBase = c10d::Backend;
#else
using GroupBase = c10d::ProcessGroup;
#endif

/// Whether the caller has said that it waits at once: newer versions have a field for it. Empty: it has not said.
template <typename Options>
std::optional<bool> said_to_wait(const Options& options) {
  if constexpr (requires { options.asyncOp; }) return !options.asyncOp;
  return std::nullopt;
}

}  // namespace torii_torch
