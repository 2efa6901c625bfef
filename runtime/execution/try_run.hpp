// SPDX-License-Identifier: Apache-2.0
// One step of a call, whichever schedule chooses it. When its sources have arrived and its targets are free, its data
// is moved, its targets are signalled and its sources released. Nothing else waits, stores or signals for a flow.
#pragma once

#include <cstddef>

namespace torii {

/// An Operation has the spans sources() and targets(), and the count sources_seen() of the first sources that are known
/// to have arrived. For their elements it has has_arrived(source, number), is_free(target), signal(target) and
/// release(source).
template <class Operation>
inline bool is_ready(const Operation& operation) noexcept {
  const auto& sources = operation.sources();
  auto seen = operation.sources_seen();
  for (; seen < sources.size(); ++seen) {
    if (operation.has_arrived(sources[seen], seen)) continue;
    operation.sources_seen() = seen;
    return false;
  }
  operation.sources_seen() = seen;
  for (const auto& target : operation.targets()) {
    if (!operation.is_free(target)) return false;
  }
  return true;
}

/// For an operation that is ready. Afterwards the status of the call is bad if something has failed.
template <class Host, class Operation>
inline void run(const Host& host, const Operation& operation) noexcept {
  if (Host::kRunsAll || host.runs(operation.sources().size(), operation.bytes())) {
    if (!operation.move()) return;  // an operand could not be read: no peer may take what was stored
  } else {
    operation.skip();
  }
  for (const auto& target : operation.targets()) operation.signal(target);
  for (const auto& source : operation.sources()) operation.release(source);
}

/// False if the operation is not ready.
template <class Host, class Operation>
inline bool try_run(const Host& host, const Operation& operation) noexcept {
  if (!is_ready(operation)) return false;
  run(host, operation);
  return true;
}

}  // namespace torii
