// SPDX-License-Identifier: Apache-2.0
// What a library that is loaded into a process must leave as it was.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace torii::tests {

/// Everything that a guest must leave alone.
struct Traces {
  std::vector<void*> handlers;
  std::multiset<std::string> environment;
  std::size_t threads = 0;
};

Traces look();
/// As look(), when the number of threads is back at `before` or a second has passed: one that was joined stays in the
/// kernel's list for a moment.
Traces look_again(const Traces& before);
/// The numbers of this process's threads.
std::set<std::string> threads();
/// Whether a file whose name holds this text is mapped.
bool is_loaded(const std::string& library);
/// The addresses, as the kernel prints them, on which this process listens; 0100007F is 127.0.0.1.
std::set<std::string> listening();

}  // namespace torii::tests
