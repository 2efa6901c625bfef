// SPDX-License-Identifier: Apache-2.0
// The counts of this run of the tests, short or full, and the seeds of tests with random input.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace torii::tests {

/// TORII_TEST_FULL is set: full counts.
bool is_full();

/// A seed and the test that draws from it. Printed, it says how the seed is replayed and where it is kept.
struct Seed {
  std::string test;
  std::uint64_t value = 0;
};
std::ostream& operator<<(std::ostream& out, const Seed& seed);

/// The seeds with which `test` runs now. TORII_TEST_SEED=n asks for the seed n alone. Otherwise they are those of the
/// test in tests/seeds.txt, which failed once, and `count` others, which are consecutive and begin with
/// first_seed(count). The name of a test is that of its entry of ctest, with /PART behind it where several tests of an
/// entry draw. What a seed means follows from its number alone, since it is replayed without the others. Throws
/// std::runtime_error if a variable or the seed of a line of the list is no number, or if there is no list.
std::vector<Seed> seeds_of(const std::string& test, std::uint64_t count);

/// 1 + run * count, so that no two runs have a seed in common. TORII_TEST_RUN is the number of the run: `./dev test`
/// derives it from the commit; without it the run is 0.
std::uint64_t first_seed(std::uint64_t count);

/// TORII_TEST_SEED is set, and one seed cannot show what many do.
bool is_replay();

/// For matrices that take long: true if this run has the cell of this number. A full run has all cells; a short one has
/// every `parts`-th, and the next short run, by its number, has others.
bool is_in_share(std::uint64_t cell, std::uint64_t parts);

/// For entries of ctest whose cases take long together (SHARES in cmake/torii_test.cmake): true if this run has the
/// case of this name. `./dev test` has every TORII_TEST_SHARES-th, drawn by its run number for each name; a full run,
/// and one without a number, have all. Throws std::runtime_error if the variable is no number, or 0.
bool is_case_of_run(const std::string& name);

/// The seeds of `test` in a list: lines of a test's name, a seed, and what it found; or of a comment behind #.
std::vector<std::uint64_t> listed_seeds(const std::string& list, const std::string& test);

}  // namespace torii::tests
