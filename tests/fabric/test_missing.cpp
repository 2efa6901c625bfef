// SPDX-License-Identifier: Apache-2.0
// What ranks are told by a torii that was built or installed without the module of a transport.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/thread_ranks.hpp"
#include "transports/libfabric/module.hpp"
#include "transports/ucx/module.hpp"

namespace torii::tests {
namespace {

template <class Open>
void expect_missed(const std::string& name, const Open& open) {
  run_ranks_as_threads(2, [&](Bootstrap& bootstrap) {
    try {
      const auto transport = open(bootstrap);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::unsupported);
      EXPECT_NE(std::string(error.what()).find("rank 0: the " + name + " transport is not there"), std::string::npos)
          << error.what();
    }
  });
}

TEST(MissingModule, IsMissedOnAllRanks) {
  expect_missed("libfabric", [](Bootstrap& bootstrap) { return libfabric::open(bootstrap, {}); });
  expect_missed("ucx", [](Bootstrap& bootstrap) { return ucx::open(bootstrap, {}); });
}

TEST(MissingModule, ListsNoProviders) {
  EXPECT_THROW(libfabric::providers(), Error);
  EXPECT_THROW(ucx::providers(), Error);
}

}  // namespace
}  // namespace torii::tests
