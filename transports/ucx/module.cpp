// SPDX-License-Identifier: Apache-2.0
// Opens the module beside the library. Switches off parts of UCX that would disturb the rest of the process.
#include "transports/ucx/module.hpp"

#include <mutex>

#include "transports/network/entry.hpp"
#include "transports/network/environment.hpp"

namespace torii::ucx {
namespace {

constexpr const char* kName = "ucx";

/// Loads the module once, also if ranks are threads of one process. The caller reports an error.
void load_quietly() {
  static std::once_flag once;
  std::call_once(once, [] {
    // UCX reads these when it is loaded. Settings of the user win; the environment is restored afterwards.
    const transports::EnvironmentMeanwhile quiet({
        {"UCX_HANDLE_ERRORS", "none"},  // no handlers for crashes
        {"UCX_ERROR_SIGNALS", ""},
        {"UCX_MEM_EVENTS", "no"},    // no hooks in mmap, munmap, malloc and their kin
        {"UCX_VFS_ENABLE", "no"},    // no thread that shows its state in a file system
        {"UCX_LOG_LEVEL", "fatal"},  // it would print to stdout; failure_text() reports failures
        {"UCX_WARN_UNUSED_ENV_VARS", "no"},
    });
    try {
      (void)transports::open_module(kName, transports::Entry<Options>::kVersion);
    } catch (const Error&) {
    }
  });
}

}  // namespace

std::unique_ptr<Transport> open(Bootstrap& bootstrap, const Options& options) {
  load_quietly();
  return transports::make_in_module(kName, bootstrap, options);
}

std::vector<ProviderReport> providers(const std::vector<std::string>& source_addresses) {
  load_quietly();
  return transports::list_in_module<Options>(kName, source_addresses);
}

}  // namespace torii::ucx
