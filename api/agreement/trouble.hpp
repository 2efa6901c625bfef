// SPDX-License-Identifier: Apache-2.0
// Why a rank cannot do its part of a collective step.
#pragma once

#include <cstring>
#include <exception>
#include <new>

#include "api/agreement/survivors_record.hpp"
#include "runtime/base/status.hpp"

namespace torii {

/// Needs no memory from the heap, so that the others can be told of a lack of memory too.
struct Trouble {
  Status status = Status::ok;
  char text[kRoundTextBytes] = {};

  bool is_there() const noexcept { return status != Status::ok; }
  /// Calls `step`, unless there is trouble already; what it throws is no reason to leave before the others are told.
  template <class Step>
  void keep(const Step& step) noexcept {
    if (is_there()) return;
    try {
      step();
    } catch (const Error& error) {
      note(error.status(), error.what());
    } catch (const std::bad_alloc&) {
      note(Status::no_resource, "out of memory");
    } catch (const std::exception& error) {
      note(Status::internal, error.what());
    }
  }

 private:
  void note(Status why, const char* what) noexcept {
    status = why;
    std::strncpy(text, what, kRoundTextBytes - 1);
  }
};

}  // namespace torii
