// SPDX-License-Identifier: Apache-2.0
// Names of sites, by addr2line.
#include "tests/exploration/sites.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string_view>

namespace torii::exploration {
namespace {

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(FILE* file) const { pclose(file); }
  };
  const std::unique_ptr<FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string output;
  std::array<char, 4096> part{};
  while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) output += part.data();
  return output;
}

/// Without the folders in front of the project's own, and without arguments.
std::string short_line(std::string function, std::string line) {
  for (const std::string_view top : {"/runtime/", "/transports/", "/tests/", "/api/", "/reduce_kernels/"}) {
    if (const auto at = line.rfind(top); at != std::string::npos) {
      line = line.substr(at + 1);
      break;
    }
  }
  if (const auto extra = line.find(" (disc"); extra != std::string::npos) line.resize(extra);
  for (const std::string_view noise : {"torii::", "std::", "(anonymous namespace)::", "<RealHost>"}) {
    for (auto at = function.find(noise); at != std::string::npos; at = function.find(noise)) {
      function.erase(at, noise.size());
    }
  }
  if (const auto arguments = function.find('('); arguments != std::string::npos && arguments != 0) {
    function.resize(arguments);
  }
  return function + " (" + line + ")";
}

/// Functions that only pass an access on.
bool is_helper(std::string_view line) {
  for (const std::string_view passes : {"words.hpp", "include/c++", "atomic", "is_ready<", "run<"}) {
    if (line.find(passes) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

std::memory_order Sites::order(const void* site, Access access, std::memory_order asked) {
  if (asked == std::memory_order_relaxed) return asked;
  reached_.try_emplace(site, Site{access, asked});
  return weakened_.contains(site) ? std::memory_order_relaxed : asked;
}

std::vector<Sites::Group> Sites::ordered() const {
  std::map<std::string, Group> groups;
  for (const auto& [address, site] : reached_) {
    const std::string text = describe_site(address);
    Group& group = groups.try_emplace(text, Group{text, site.access, site.order, {}}).first->second;
    group.sites.insert(address);
  }
  std::vector<Group> list;
  for (auto& [text, group] : groups) list.push_back(std::move(group));
  return list;
}

std::vector<std::string> lines_of(const void* return_address) {
  static std::map<const void*, std::vector<std::string>> known;
  const auto [entry, is_new] = known.try_emplace(return_address);
  if (!is_new) return entry->second;
  Dl_info info{};
  if (dladdr(return_address, &info) == 0) return entry->second;
  const auto offset =
      reinterpret_cast<std::uintptr_t>(return_address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase) - 1;
  std::ostringstream command;
  command << "addr2line -i -f -C -e '" << info.dli_fname << "' 0x" << std::hex << offset << " 2>/dev/null";
  std::istringstream output(output_of(command.str()));
  std::string function;
  std::string line;
  while (std::getline(output, function) && std::getline(output, line)) {
    entry->second.push_back(short_line(function, line));
  }
  return entry->second;
}

std::string describe_site(const void* return_address) {
  std::string text;
  std::string last;
  for (const std::string& line : lines_of(return_address)) {
    if (is_helper(line)) continue;
    const std::string function = line.substr(0, line.find(" ("));
    if (function == last) continue;
    text += text.empty() ? line : " in " + function;
    last = function;
  }
  return text.empty() ? "an unknown place" : text;
}

const char* name(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
      return "consume";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

}  // namespace torii::exploration
