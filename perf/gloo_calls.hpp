// SPDX-License-Identifier: Apache-2.0
// The Gloo side of the comparison: joining, and Gloo's own collectives. Its headers are included in one source only.
#pragma once

#include <torii/torii.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perf/common/job.hpp"

namespace torii::perf {

/// One way in which Gloo makes one call. Errors are exceptions.
class GlooCall {
 public:
  explicit GlooCall(std::string name) : name_(std::move(name)) {}
  virtual ~GlooCall() = default;
  GlooCall(const GlooCall&) = delete;
  GlooCall& operator=(const GlooCall&) = delete;

  const std::string& name() const { return name_; }
  /// Before and after the call, not timed: copies of operands that Gloo's algorithm overwrites, and of its result.
  virtual void prepare() {}
  virtual void run() = 0;
  virtual void settle() {}

 private:
  std::string name_;
};

/// A context of Gloo over TCP on 127.0.0.1, as PyTorch makes it on one machine.
class Gloo {
 public:
  /// Collective. The ranks find each other by files in a temporary directory, which is removed.
  explicit Gloo(const Job& job);
  ~Gloo();
  Gloo(const Gloo&) = delete;
  Gloo& operator=(const Gloo&) = delete;

  static std::string version();
  /// Collective. Every algorithm that Gloo has for the call, which must be f32, out of place and, where it combines, a
  /// sum; it outlives them. None: Gloo lacks the collective.
  std::vector<std::unique_ptr<GlooCall>> ways(const torii_call& call) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace torii::perf
