// SPDX-License-Identifier: Apache-2.0
// Starting torii-lab, reading its JSON, and looking for what it could have left.
#include "tests/lab/lab_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/places.hpp"
#include "tools/torii-lab/cage.hpp"

namespace torii::tests {
namespace {

namespace fs = std::filesystem;

/// As much as can be read: of a process that ends meanwhile nothing, and an iterator over the file would throw.
std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

void Lab::SetUp() {
  if (const std::string reason = tools::why_no_laboratory(); !reason.empty()) GTEST_SKIP() << reason;
  std::string form = (fs::temp_directory_path() / "torii_test_lab_XXXXXX").string();
  ASSERT_NE(mkdtemp(form.data()), nullptr);
  folder_ = form;
  before_ = traces();
}

void Lab::TearDown() {
  if (folder_.empty()) return;
  fs::remove_all(folder_);
  EXPECT_TRUE(wait_for_traces(before_)) << testing::PrintToString(before_) << "\nand now\n"
                                        << testing::PrintToString(traces());
}

Words Lab::command(const Words& network, const Words& program) {
  Words words{bin_dir() + "/torii-lab"};
  words.insert(words.end(), network.begin(), network.end());
  words.insert(words.end(), {"--timeout", "25", "--"});
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

nlohmann::json Lab::report(const Words& network, const Words& program, std::string* output) const {
  Words options = network;
  options.insert(options.end(), {"--json", path("report.json")});
  const Outcome outcome = run(command(options, program));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  if (output != nullptr) *output = outcome.output;
  return nlohmann::json::parse(text_of(path("report.json")), nullptr, false);
}

double link_bytes(const nlohmann::json& report, int from, const std::string& device) {
  for (const auto& link : report["links"]) {
    if (link["from"] == from && link["device"] == device) return link["bytes"];
  }
  ADD_FAILURE() << "no link of node " << from << " by " << device;
  return 0;
}

std::vector<std::string> traces() {
  std::set<std::string> found;
  std::error_code ignored;
  for (const auto& one : fs::directory_iterator("/run/netns", ignored)) found.insert("name " + one.path().string());
  for (const auto& one : fs::directory_iterator("/sys/class/net", ignored))
    found.insert("device " + one.path().string());
  for (const auto& one : fs::directory_iterator("/proc", ignored)) {
    const std::string program = text_of(one.path() / "comm");
    if (program == "torii-lab\n" || program == "lab_probe\n") found.insert("process " + one.path().string());
    const fs::path network = fs::read_symlink(one.path() / "ns" / "net", ignored);
    if (!network.empty()) found.insert("network " + network.string());
  }
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (holds(line, "/run/netns")) found.insert("mount " + line);
  }
  return {found.begin(), found.end()};
}

bool wait_for_traces(const std::vector<std::string>& expected) {
  for (const double end_s = now_s() + 5; now_s() < end_s; usleep(20'000)) {
    const std::vector<std::string> now = traces();
    // Others on this machine may have ended something meanwhile; what counts is that nothing was added.
    if (std::ranges::includes(expected, now)) return true;
  }
  return false;
}

}  // namespace torii::tests
