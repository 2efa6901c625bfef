// SPDX-License-Identifier: Apache-2.0
// Where this run finds things. Functions, since a path on the command line of a compiler would keep clones from sharing
// a compiler cache.
#pragma once

#include <string>

namespace torii::tests {

/// The root of the sources.
const std::string& source_dir();
const std::string& build_dir();
/// Where all programs that users install land.
const std::string& bin_dir();
/// A program of the tests, which they start.
std::string helper(const std::string& name);

}  // namespace torii::tests
