// SPDX-License-Identifier: Apache-2.0
// Finds and opens the module beside the library that this code is in.
#include "transports/libfabric/module.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include "runtime/status.hpp"
#include "transports/libfabric/entry.hpp"

namespace torii::libfabric {
namespace {

constexpr const char* kFine = "fine";
constexpr const char* kFile = "torii/libtorii_libfabric.so";

/// The folder of the library or program that holds this function.
std::string own_folder() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &where) == 0 || where.dli_fname == nullptr) return ".";
  const std::string path = where.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Puts signal handlers back as they were: libpsm2 and libinfinipath, which libfabric links, install handlers for
/// crashes as soon as they are loaded. Ranks that are threads of one process may load at once: the first one sees how
/// handlers were, the last one puts them back.
class KeptHandlers {
 public:
  KeptHandlers() noexcept {
    const std::lock_guard lock(mutex_);
    if (holders_++ != 0) return;
    for (int signal = 1; signal <= kLast; ++signal) known_[signal] = sigaction(signal, nullptr, &before_[signal]) == 0;
  }
  ~KeptHandlers() {
    const std::lock_guard lock(mutex_);
    if (--holders_ != 0) return;
    for (int signal = 1; signal <= kLast; ++signal) {
      struct sigaction now {};
      if (!known_[signal] || sigaction(signal, nullptr, &now) != 0) continue;
      if (now.sa_handler != before_[signal].sa_handler) sigaction(signal, &before_[signal], nullptr);
    }
  }
  KeptHandlers(const KeptHandlers&) = delete;
  KeptHandlers& operator=(const KeptHandlers&) = delete;

 private:
  static constexpr int kLast = 31;  // real-time signals belong to programs
  static inline std::mutex mutex_;
  static inline int holders_ = 0;
  static inline bool known_[kLast + 1] = {};
  static inline struct sigaction before_[kLast + 1] = {};
};

const Entry& load() {
  // Tests link this code into programs that stand elsewhere.
  const char* const tests = secure_getenv("TORII_TEST_MODULES");
  std::string path = (tests != nullptr ? tests : own_folder()) + std::string("/") + kFile;
  // torii-info has this code in itself and stands in another folder than the library.
  const std::string beside_library = own_folder() + "/" TORII_LIBRARY_FROM_PROGRAMS "/" + kFile;
  if (access(path.c_str(), F_OK) != 0 && access(beside_library.c_str(), F_OK) == 0) path = beside_library;
  const KeptHandlers kept;
  // Never unloaded: libfabric and its providers keep state for the whole process.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) {
    const char* const why = dlerror();
    throw Error(Status::unsupported, "the libfabric transport is not there (" + std::string(why ? why : path) +
                                         "); install libfabric and a torii built with it");
  }
  const auto* const entry = static_cast<const Entry*>(dlsym(module, "torii_libfabric_entry"));
  if (entry == nullptr || entry->version != kEntryVersion) {
    throw Error(Status::mismatch, path + " belongs to another version of torii");
  }
  return *entry;
}

}  // namespace

std::unique_ptr<Transport> open(Exchange& exchange, const Options& options) {
  const Entry* entry = nullptr;
  std::string outcome = kFine;
  try {
    entry = &load();
  } catch (const Error& error) {
    outcome = error.what();
  }
  // A rank without the module must not leave the others waiting.
  const std::vector<std::string> all = gather_texts(exchange, outcome);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] == kFine) continue;
    throw Error(Status::unsupported, "rank " + std::to_string(rank) + ": " + all[rank], static_cast<int>(rank));
  }
  const KeptHandlers kept;
  return std::unique_ptr<Transport>(entry->make(exchange, options));
}

std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses) {
  const KeptHandlers kept;
  return load().list(source_addresses);
}

}  // namespace torii::libfabric
