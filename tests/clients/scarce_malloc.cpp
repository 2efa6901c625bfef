// SPDX-License-Identifier: Apache-2.0
// Preloaded: one malloc() of coll/torii fails, the one of number TORII_TEST_FAILS_AT, on rank 1. The library prints a
// line when it does.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

using Malloc = void* (*)(std::size_t);

/// 0: none fails in this process.
int fails_at() {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* const number = std::getenv("TORII_TEST_FAILS_AT");
  return rank == nullptr || std::strcmp(rank, "1") != 0 || number == nullptr ? 0 : std::atoi(number);
}

bool is_component(const void* caller) {
  Dl_info info = {};
  return dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
         std::strstr(info.dli_fname, "mca_coll_torii") != nullptr;
}

std::atomic<int> calls = 0;

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  static const Malloc next = reinterpret_cast<Malloc>(dlsym(RTLD_NEXT, "malloc"));
  static const int number = fails_at();
  if (number != 0 && is_component(__builtin_return_address(0)) && ++calls == number) {
    constexpr char kLine[] = "an allocation has failed\n";
    if (write(STDOUT_FILENO, kLine, sizeof(kLine) - 1) < 0) std::abort();
    return nullptr;
  }
  return next(bytes);
}
