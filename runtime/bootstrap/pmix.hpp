// SPDX-License-Identifier: Apache-2.0
// Joins through a PMIx server. The code that uses libpmix is a module of its own, opened only when it is needed.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/bootstrap/bootstrap.hpp"

namespace torii {

/// The table that libtorii_pmix.so exports as torii_pmix_module. Its functions return a torii::Status as a number. They
/// write a reason to `text`, of `text_bytes` including the zero, and the rank that it is about, or -1, to `about`.
struct PmixModule {
  int version;
  int (*open)(int* rank, int* ranks, char* text, std::size_t text_bytes);
  int (*all_gather)(const void* mine, void* all, std::size_t bytes, double timeout_s, int* about, char* text,
                    std::size_t text_bytes);
  void (*close)();
};

/// The version of this table; a module of another version is refused.
inline constexpr int kPmixModuleVersion = 1;

/// Opens the module and joins. The module stays loaded. Throws Error: unsupported if it cannot be opened, transport if
/// the server does not answer.
std::unique_ptr<Bootstrap> join_pmix(const Settings& settings);

}  // namespace torii
