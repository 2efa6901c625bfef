// SPDX-License-Identifier: Apache-2.0
// Finds and opens modules beside the library that this code is in.
#include "transports/network/module_file.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/status.hpp"

namespace torii::transports {
namespace {

/// The folder of the library or program that contains this function.
std::string own_folder() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &where) == 0 || where.dli_fname == nullptr) return ".";
  const std::filesystem::path path = where.dli_fname;
  if (path.has_parent_path()) return path.parent_path();
  // A program that the shell found through PATH.
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

/// The folder of the modules for tests, which link this code into programs in other folders; nullptr outside tests.
const char* test_folder() { return secure_getenv("TORII_TEST_MODULES"); }

/// The path beside the library. torii-info contains this code but is in another folder than the library.
std::string find_file(const std::string& file) {
  if (test_folder() != nullptr) return test_folder() + std::string("/") + file;
  const std::string beside = own_folder() + "/" + file;
  const std::string from_programs = own_folder() + "/" TORII_LIBRARY_FROM_PROGRAMS "/" + file;
  return access(beside.c_str(), F_OK) != 0 && access(from_programs.c_str(), F_OK) == 0 ? from_programs : beside;
}

}  // namespace

std::mutex KeptHandlers::mutex_;
int KeptHandlers::holders_ = 0;
bool KeptHandlers::known_[kLast + 1] = {};
struct sigaction KeptHandlers::before_[kLast + 1] = {};

KeptHandlers::KeptHandlers() noexcept {
  const std::lock_guard lock(mutex_);
  if (holders_++ != 0) return;
  for (int signal = 1; signal <= kLast; ++signal) known_[signal] = sigaction(signal, nullptr, &before_[signal]) == 0;
}

KeptHandlers::~KeptHandlers() {
  const std::lock_guard lock(mutex_);
  if (--holders_ != 0) return;
  for (int signal = 1; signal <= kLast; ++signal) {
    struct sigaction now {};
    if (!known_[signal] || sigaction(signal, nullptr, &now) != 0) continue;
    if (now.sa_handler != before_[signal].sa_handler) sigaction(signal, &before_[signal], nullptr);
  }
}

const void* open_module(const std::string& name, std::uint64_t version) {
  const std::string file = "libtorii_" + name + ".so";
  const std::string path = find_file("torii/" + file);
  const KeptHandlers kept;
  // Never unloaded: the module's libraries keep state for the whole process.
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  void* module = dlopen(path.c_str(), kFlags);
  if (module == nullptr) {
    const char* const why = dlerror();
    const std::string text = why == nullptr ? path : why;
    // Programs that contain this code find the module by their run path.
    if (test_folder() == nullptr) module = dlopen(file.c_str(), kFlags);
    if (module == nullptr) {
      throw Error(Status::unsupported, "the " + name + " transport is not there (" + text + "); install " + name +
                                           " and a torii built with it");
    }
  }
  const auto* const entry = static_cast<const EntryVersion*>(dlsym(module, ("torii_" + name + "_entry").c_str()));
  if (entry == nullptr || entry->value != version) {
    throw Error(Status::unsupported, path + " belongs to another version of torii");
  }
  return entry;
}

}  // namespace torii::transports
