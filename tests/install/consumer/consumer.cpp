// SPDX-License-Identifier: Apache-2.0
// An embedder's program, as small as it gets: it prints the version of the library that it was linked to.
#include <torii/torii.h>

#include <cstdio>
#include <cstring>

int main() {
  const char* version = torii_version();
  if (version == nullptr || std::strlen(version) == 0) {
    std::fputs("torii_version() returned nothing\n", stderr);
    return 1;
  }
  std::printf("torii %s\n", version);
  return 0;
}
