// SPDX-License-Identifier: Apache-2.0
// The text of the last error, one per thread.
#include "api/calls/last_error.hpp"

#include <exception>
#include <string>

namespace torii {
namespace {

thread_local std::string thread_error;

}  // namespace

void set_last_error(std::string_view text) noexcept {
  try {
    thread_error = text;
  } catch (const std::exception&) {
    thread_error.clear();
  }
}
const char* last_error() noexcept { return thread_error.c_str(); }

}  // namespace torii
