// SPDX-License-Identifier: Apache-2.0
// Reads the environment and tests/seeds.txt.
#include "tests/support/test_run.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "tests/support/places.hpp"

namespace torii::tests {
namespace {

std::uint64_t number_of(const std::string& text, const std::string& of) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(of + " is '" + text + "'; it must be a number from 0 to 18446744073709551615");
  }
  return value;
}

/// Read once, since some tests hide the folder for a while.
const std::string& committed_list() {
  static const std::string kList = [] {
    const std::string path = std::filesystem::path(source_dir()) / "tests/seeds.txt";
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read '" + path + "', the list of seeds that failed once");
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }();
  return kList;
}

}  // namespace

bool is_full() { return std::getenv("TORII_TEST_FULL") != nullptr; }

std::ostream& operator<<(std::ostream& out, const Seed& seed) {
  return out << "seed " << seed.value << " of " << seed.test << ": replay it with TORII_TEST_SEED=" << seed.value
             << ", then add the line '" << seed.test << " " << seed.value << " WHAT IT FOUND' to tests/seeds.txt";
}

bool is_replay() { return std::getenv("TORII_TEST_SEED") != nullptr; }

std::uint64_t first_seed(std::uint64_t count) {
  const char* const run = std::getenv("TORII_TEST_RUN");
  return 1 + (run == nullptr ? 0 : number_of(run, "TORII_TEST_RUN")) * count;
}

bool is_in_share(std::uint64_t cell, std::uint64_t parts) { return is_full() || cell % parts == first_seed(1) % parts; }

/// Drawn, and not counted as cells are: a case that is in every second run and has every second cell in it would have
/// the same cells each time. tests/support/shares.py draws alike.
bool is_case_of_run(const std::string& name) {
  const char* const shares = std::getenv("TORII_TEST_SHARES");
  if (shares == nullptr || std::getenv("TORII_TEST_RUN") == nullptr || is_full()) return true;
  const std::uint64_t count = number_of(shares, "TORII_TEST_SHARES");
  if (count == 0) throw std::runtime_error("TORII_TEST_SHARES is '0'; it must be at least 1");
  std::uint64_t draw = first_seed(1) * 0x9e3779b97f4a7c15ULL;
  for (const char letter : name) draw = (draw ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  return (draw ^ draw >> 32) % count == 0;
}

std::vector<std::uint64_t> listed_seeds(const std::string& list, const std::string& test) {
  std::vector<std::uint64_t> seeds;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::string seed;
    if (!(words >> name) || name.starts_with('#')) continue;
    words >> seed;
    const std::uint64_t value = number_of(seed, "tests/seeds.txt: the seed of " + name);
    if (name == test) seeds.push_back(value);
  }
  return seeds;
}

std::vector<Seed> seeds_of(const std::string& test, std::uint64_t count) {
  if (const char* const only = std::getenv("TORII_TEST_SEED"); only != nullptr) {
    return {{test, number_of(only, "TORII_TEST_SEED")}};
  }
  std::vector<Seed> seeds;
  for (const std::uint64_t value : listed_seeds(committed_list(), test)) seeds.push_back({test, value});
  const std::uint64_t first = first_seed(count);
  for (std::uint64_t i = 0; i < count; ++i) seeds.push_back({test, first + i});
  return seeds;
}

}  // namespace torii::tests
