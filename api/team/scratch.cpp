// SPDX-License-Identifier: Apache-2.0
// Takes memory for packed copies from the arena and gives it back.
#include "api/team/scratch.hpp"

#include <string>

#include "api/calls/last_error.hpp"
#include "api/team/team.hpp"

namespace torii {

Scratch::~Scratch() {
  if (address_ != nullptr) context_->free(address_);
}

std::byte* Scratch::reserve(Team& team, std::size_t bytes, const char* purpose) {
  if (bytes <= bytes_) return address_;
  context_ = &team.context();
  if (address_ != nullptr) context_->free(address_);
  address_ = nullptr;
  bytes_ = 0;
  try {
    address_ = static_cast<std::byte*>(context_->allocate(bytes));
  } catch (const Error& error) {
    const Status status = team.operations().give_up(error.status(), "rank " + std::to_string(team.rank()) + " has no " +
                                                                        std::to_string(bytes) + " bytes " + purpose +
                                                                        ": " + error.what());
    throw Error(status, last_error());
  }
  bytes_ = bytes;
  return address_;
}

}  // namespace torii
