// SPDX-License-Identifier: Apache-2.0
// The rows of the catalogue, each defined in the file of its name.
#pragma once

#include "collectives/building/algorithm.hpp"

namespace torii {

extern const Algorithm kA2a;
extern const Algorithm kA2and;
extern const Algorithm kA2atPrinted;
extern const Algorithm kA2at;
extern const Algorithm kDirect;
extern const Algorithm kFloyd;
extern const Algorithm kNode;
extern const Algorithm kTrinaryx3;
extern const Algorithm kBucket;
extern const Algorithm kRing;
extern const Algorithm kRecursiveDoubling;
extern const Algorithm kRabenseifner;
extern const Algorithm kBinomial;
extern const Algorithm kSwing;
extern const Algorithm kScheduled;
extern const Algorithm kChain;
extern const Algorithm kMultilane;

}  // namespace torii
