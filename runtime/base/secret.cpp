// SPDX-License-Identifier: Apache-2.0
// Secrets come from libsodium, which asks the kernel.
#include "runtime/base/secret.hpp"

#include <sodium.h>

#include "runtime/base/status.hpp"

namespace torii {

std::uint64_t random_secret() {
  if (sodium_init() < 0) throw Error(Status::no_resource, "libsodium finds no source of random bytes");
  std::uint64_t secret = 0;
  randombytes_buf(&secret, sizeof(secret));
  return secret;
}

}  // namespace torii
