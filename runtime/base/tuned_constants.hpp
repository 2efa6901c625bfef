// SPDX-License-Identifier: Apache-2.0
// The constants that decide how fast torii is, or how it waits: value, meaning, and where each comes from.
// `torii-info constants` prints the list. They are equal on all ranks of a job, which must run one build. Those that
// select algorithms or pack calls may change the bits of results at `run`, as a tune table may. Limits of formats,
// capacities, and patience with failed ranks are not here.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace torii {

struct Tuned {
  std::string_view name;     ///< the part of torii, then the constant
  double value;              ///< exact: integers are below 2^53
  std::string_view unit;     ///< "" for a factor
  std::string_view meaning;  ///< what it decides
  std::string_view origin;   ///< a saved measurement, another source, or "a guess"
};

// Code names its constant by tuned<T>("NAME"), so a row cannot be forgotten. Rows named openmpi.FILE.MACRO are macros
// of plugins/openmpi, which is C and includes none of this. A test compares them, and finds rows that nothing uses.
inline constexpr auto kTuned = std::to_array<Tuned>({
    // Waiting (runtime/fabric/waiting.hpp, docs/execution.md).
    {"waiting.polls_alone", 20000, "polls", "before the first yield if every rank has a CPU",
     "a prototype on 2 CPUs, not measured again"},
    {"waiting.yields_alone", 2000, "yields", "before the first sleep if every rank has a CPU",
     "a prototype on 2 CPUs, not measured again"},
    {"waiting.polls_shared", 5, "polls",
     "before the first yield if ranks share CPUs; the awaited rank is likely to need this CPU",
     "measured with 1, 5, 15 and 50 polls, 3 to 8 ranks on 2 CPUs: perf/results/2026-11-24-spins-shared.txt"},
    {"waiting.yields_shared", 200, "yields", "before the first sleep if ranks share CPUs",
     "a prototype on 2 CPUs, not measured again: a hand-over takes 1.1 us by a yield, by a futex 1.8 us on one core "
     "and 16 us across cores"},
    {"waiting.polls_shared_network", 1, "polls",
     "the same over a network that wakes sleepers, where a poll is a system call or more",
     "measured over TCP: 64 B among 9 ranks took 127 us instead of 170 us; the run was not saved"},
    {"waiting.yields_shared_network", 8, "yields",
     "the same over a network: the message is further away than a sleep and a wake-up take", "a guess"},
    {"waiting.yields_after_sleep", 2, "yields", "before the next sleep if polls are costly and the last wait slept",
     "a guess"},
    {"waiting.polls_per_turn", 64, "polls", "between two turns for other work of the process", "a guess"},
    {"waiting.sleep_least", 1000, "us", "a sleep that nothing may end early", "a guess"},
    {"waiting.sleep_most", 100'000, "us", "a sleep that a put ends, so that a missed wake-up delays a call little",
     "a guess"},
    {"waiting.sleep_most_per_rank", 20'000, "us",
     "the same times the number of ranks, if that is longer: many ranks share the CPUs to look", "a guess"},
    {"waiting.yields_per_turn", 4, "yields", "between two turns of an embedder's idle function before the first sleep",
     "MPI moves a message part by part, each of which waits for such a turn: perf/results/2026-12-01-overlap.txt"},
    {"waiting.sleep_serving", 50, "us",
     "the longest sleep of a rank whose embedder has an idle function, which gets one turn before each; the kernel "
     "adds "
     "some 50",
     "asked for: a message of 1 MiB takes about a dozen looks at it"},
    {"waiting.sleep_blind_per_rank", 50, "us",
     "times the ranks of the node: the longest sleep in which a ring may be missed, if that is less than sleep_least; "
     "many ranks share the CPUs to look",
     "asked for: 100 us with 2 ranks"},
    {"waiting.quiet_per_sleep", 8, "",
     "by which the time in which nothing has moved is divided, for the length of such a sleep", "a guess"},
    {"waiting.checks_every", 1'000'000, "ns", "between two rounds of slow checks", "a guess"},
    {"waiting.clock_every_polls", 1024, "polls", "between two looks at the clock while it polls", "a guess"},
    {"waiting.clock_every_yields", 32, "yields", "the same while it yields", "a guess"},
    {"waiting.shared_sleep", 1000, "us", "the longest sleep over a network if two threads wait and have no bell",
     "a guess"},
    {"waiting.mixed_sleep", 1000, "us", "the longest sleep if one of two transports cannot wake the rank", "a guess"},
    {"waiting.call_polls", 30, "polls", "of a blocking call before it makes a request and waits", "a guess"},
    {"waiting.cpu_told_after", 25'000, "ns",
     "of a wait, beyond its first look at the clock, after which the rank tells its CPU", "a guess"},
    {"waiting.hop_after", 100'000, "ns",
     "of a wait, likewise, after which a rank leaves a CPU on which another one is: much longer than a call, much "
     "shorter than a time slice",
     "a prototype; other values were not measured"},
    {"waiting.hop_every", 5'000'000, "ns", "between two looks of a context for other ranks on its CPU", "a guess"},
    {"waiting.hop_rest", 1'000'000'000, "ns",
     "the longest rest after a hop: a rest has hop_every, and doubles if a hop comes before that time has passed since "
     "the end of the last rest, so that ranks that meet again and again hop once a second",
     "a guess"},
    {"waiting.cpu_seen_for", 100'000'000, "ns",
     "for which a rank counts as being where it was seen: more than the time slices of a dozen processes", "a guess"},
    {"waiting.cpu_taken_for", 5'000'000'000, "ns",
     "for which nobody hops to where a rank was seen: it may compute there, or have died", "a guess"},
    {"waiting.cpu_told_for", 5'000'000, "ns",
     "for which a thread that tests or helps leaves alone what its rank has told: another one may wait there",
     "a guess"},
    {"waiting.turn", 100'000'000, "ns",
     "between two slow checks of one request among several, and two tests of the others of a list", "a guess"},
    {"waiting.lock_polls", 100, "polls", "for a lock of a team before the thread yields", "a guess"},
    {"waiting.background_yields", 100, "yields", "of an idle progress thread before it naps", "a guess"},
    {"waiting.background_nap", 50, "us", "of an idle progress thread", "a guess"},

    // Copies and stores.
    {"stores.hot_bytes", 8192, "bytes",
     "in which a value for several places is computed and copied on, so that it stays in the first-level cache",
     "a prototype of 2 threads, not measured again"},
    {"stores.non_temporal_bytes", 8 << 20, "bytes",
     "from which on vectors are stored past the caches, where they would evict the next segments",
     "a guess from the sizes of second-level caches; others were not measured"},
    {"stores.timed_bytes_min", 2048, "bytes",
     "from which on a message may be stored past the caches: for shorter ones its reader waits longer than the sender "
     "saves",
     "measured beside 32 KiB, 2 ranks: perf/results/2026-11-26-stores-past-caches.txt"},
    {"stores.sender_line", 3, "ns",
     "charged per line that its reader finds in memory, if ranks only send: the reader waits while the sender stores "
     "the next message",
     "measured, 2 ranks: 10 ns made broadcasts, scatters and scans of 64 KiB and more up to 1.9 times slower, and "
     "alone a broadcast of 8 KiB a tenth faster: perf/results/2026-11-26-stores-of-senders.txt"},
    {"stores.exchanger_line", 10, "ns", "the same if ranks send and receive in turn",
     "measured, 2 ranks that share a cache: 3 ns made allreduces of 4 and 8 KiB slower: "
     "perf/results/2026-11-26-stores-past-caches.txt"},
    {"stores.cold_messages", 2, "messages", "to slots that are not timed at first", "a guess"},
    {"stores.cold_messages_in_place", 64, "messages",
     "the same in a peer's vector, where nobody knows which message is the first", "a guess"},
    {"outbox.ahead_bytes", 65536, "bytes", "of short calls that may run ahead of their readers", "a guess"},
    {"outbox.bytes_per_look", 16384, "bytes",
     "of short extents that are claimed before the sender looks which ones are free again", "a guess"},
    {"reads.bytes_min", 64 << 10, "bytes",
     "from which on peers may read private memory: shorter calls do not pay for a system call per reader", "a guess"},
    {"reads.portion_bytes", 128 << 10, "bytes", "of one read, which should then still be in the second-level cache",
     "a guess from the sizes of second-level caches"},

    // Two ways of one thing, timed now and then (runtime/base/timed_choice.hpp).
    {"learning.cold_turns", 8, "turns", "that may touch new memory and are not timed", "a guess"},
    {"learning.samples", 3, "samples", "of which the least counts, so that a lost CPU in one does not mislead",
     "a guess"},
    {"learning.best_every", 32, "turns", "between two timings of the way in use", "a guess"},
    {"learning.trial_every", 512, "turns", "between two trials of the other way", "a guess"},
    {"learning.common_trial_every", 128, "turns", "the same if all ranks try it in the same call", "a guess"},
    {"learning.second_trial", 64, "turns", "until a second long trial corrects the first", "a guess"},
    {"learning.clearly_better", 0.9, "",
     "of the time of the way in use, below which the other one is selected: noise is not to switch it to and fro",
     "a guess"},

    // Messages and engines.
    {"sending.in_place_bytes_min", 16384, "bytes",
     "from which on engines send from the vector itself; a shorter payload is copied into a slot, behind its line",
     "a guess"},
    {"sending.short_call_bytes", 4096, "bytes",
     "of a call that uses one engine for all peers: both ends poll each engine in use, over sockets by system calls",
     "a guess"},
    {"sending.joined_bytes_max", 1024, "bytes", "of a payload that libfabric copies behind its line for one transfer",
     "a guess"},
    {"sending.ucx_message_bytes_max", 4096, "bytes", "of a payload that travels in one message of UCX",
     "a guess; UCX's first packet holds 8 KiB"},
    {"sending.ucx_piece_bytes", 8192, "bytes", "of one message of UCX through shared memory",
     "UCX's packet: it gathers the packets of longer messages by one more copy"},
    {"sending.put_bytes_sockets", 16384, "bytes", "that a network moves in the time of a put, over sockets",
     "a put takes 4 to 6 us (perf/transports), in which fast Ethernet adapters and the loopback move some 16 KiB"},
    {"sending.put_bytes", 4096, "bytes", "the same over other networks", "a guess: one microsecond at 4 GB/s"},
    {"engines.shared_slots_min", 32, "slots", "of a stream from which on engines share its messages by their speed",
     "reasoned: an engine at a tenth of the others' rate then delays no message"},
    {"engines.newest_weight", 0.25, "", "of the latest message in an engine's time", "a guess"},
    {"engines.forgets", 1.0 / 256, "", "by which an idle engine is believed to be quicker each time it is passed over",
     "a guess"},
    {"engines.patience", 50'000'000, "ns", "for which a stream waits for credits while no engine has room", "a guess"},
    {"engines.quiet_polls", 8, "polls", "without result after which an engine is polled less often", "a guess"},
    {"engines.rounds_per_quiet_poll", 4, "rounds",
     "of progress between two polls of a quiet engine while others are busy", "a guess"},
    {"exchanges.taken_at_once", 32, "transfers", "from which a rank takes at once: more only add signals to poll",
     "a guess"},
    {"exchanges.portion_bytes", 256 << 10, "bytes", "copied or read in place before other transfers get their turn",
     "a guess"},
    {"exchanges.short_block_bytes", 4096, "bytes",
     "of a block of a call with unequal blocks that goes through slots without buffer offers", "a guess"},
    {"redistribution.short_block_bytes", 4096, "bytes", "of equal blocks that use the catalogue's alltoall", "a guess"},
    {"packing.call_bytes_max", 8 << 10, "bytes",
     "of a call of a group that is packed with others: packing copies longer ones",
     "a guess; packing gains up to 8 KiB, and longer ones were not tried: perf/results/2026-11-25-coalesced.txt"},
    {"packing.all_bytes_max", 256 << 10, "bytes", "of all calls of a group that are packed together", "a guess"},

    // Models that select algorithms where no tune row does (docs/tuning.md).
    {"node.one_shot_bytes_max", 2048, "bytes",
     "that every rank sends whole to every other: longer ones take too many copies",
     "a prototype, not measured again; rows of the tune table go first"},
    {"chain.segment_time", 5e-6, "s", "that one more segment costs besides its bytes",
     "a guess at a system call and a wake-up: without it the model would ask for segments of one byte"},
    {"chain.segment_bytes", 256, "bytes",
     "that one more segment costs on a link: the signal's line, the provider's header, packets that are not full",
     "measured on links of 10 Mbit/s over tcp;ofi_rxm, where segments of 4 KiB take 2 to 3 % longer than those of 8 "
     "KiB; the run was not saved"},
    {"levels.ranks_min", 16, "ranks", "from which on levels estimates",
     "simulated: below, node in one shot or ring was faster"},
    {"levels.bytes_min", 4096, "bytes", "from which on levels estimates", "simulated, as levels.ranks_min"},
    {"levels.bytes_max_per_rank", 2048, "bytes", "for each rank, up to which levels estimates",
     "simulated, as levels.ranks_min"},
    {"levels.clear_gain", 0.8, "", "of the time of node, below which levels estimates",
     "a guess, since the times of the model are assumed"},
    {"levels.near_line", 50, "ns", "until a rank sees a line of a rank that shares its cache",
     "assumed, among figures published for servers of 2020 to 2024"},
    {"levels.far_line", 120, "ns", "the same from another cache of the package", "assumed, as levels.near_line"},
    {"levels.package_line", 220, "ns", "the same from another package", "assumed, as levels.near_line"},
    {"levels.near_rate", 12, "GB/s", "at which one rank copies from its cache", "assumed, as levels.near_line"},
    {"levels.far_rate", 32, "GB/s", "of all copies from other caches into one together",
     "assumed, as levels.near_line"},
    {"levels.package_rate", 100, "GB/s", "of all copies from other packages into one together",
     "assumed, as levels.near_line"},
    {"multilane.short_block_bytes", 2048, "bytes",
     "of blocks that cross in one message, where handing on costs more than the link", "a guess"},
    {"multilane.quicker", 0.95, "",
     "of another estimate, above which multilane counts as equal: the models are no better", "a guess"},
    {"lanes.segment_bytes_min", 4 << 10, "bytes", "of a segment between sites", "a guess"},
    {"lanes.segment_bytes_max", 64 << 10, "bytes", "of a segment between sites", "a guess"},
    {"lanes.window_bytes", 65536, "bytes", "in flight of a stream that was not measured",
     "TCP without window scaling, or just after slow start"},
    {"lanes.as_fast", 0.9, "", "of one stream's rate, from which on several count as equally fast", "a guess"},
    {"lanes.wider", 2, "", "times the measured rates that the link is then believed to carry", "a guess"},
    {"sites.latency_min", 1'000'000, "ns", "of a link between sites; shorter links lie within one", "a guess"},
    {"neighbor_exchange.latency", 1.5e-6, "s", "of a link", "torii-sim's default"},
    {"neighbor_exchange.rate", 5e9, "bytes/s", "of a link", "torii-sim's default"},
    {"floyd.latency", 1.5e-6, "s", "of the assumed network", "torii-sim's default"},
    {"floyd.rate", 10e9, "bytes/s", "of the assumed network; the choice depends on its product with the latency",
     "assumed: slower networks have longer latencies, so the product is alike (20 KB for 20 us and 1 GB/s)"},
    {"floyd.message_time", 2e-7, "s", "of a message in its rank's thread", "torii-sim's default"},
    {"floyd.block_time", 3e-8, "s", "of a block in its rank's thread",
     "a guess at the instructions of one step of a linear program"},
    {"floyd.block_bytes_max", 64 << 10, "bytes", "of blocks that may travel together",
     "reasoned: one more hop of a longer block costs more than any number of messages saves"},

    // The plugin for Open MPI.
    {"openmpi.access.LEAST_BYTES", 32768, "bytes",
     "of a broadcast with holes that is packed part by part; shorter ones are packed whole",
     "measured by mpi_side_by_side (bcast_holes), 4 ranks on 2 CPUs; the runs at other limits were not saved"},
    {"openmpi.access.LEAST_BYTES_OF_TWO", 262144, "bytes",
     "the same with 2 ranks, where one reads in place what the other packed",
     "measured, as openmpi.access.LEAST_BYTES, with 2 ranks"},
    {"openmpi.attach.LOOKS_MOST", 64, "looks", "at messages of MPI in one turn of the idle function", "a guess"},
    {"openmpi.attach.LOOKS_IN_VAIN", 8, "looks", "of these in a row, with yields between, after which the turn ends",
     "as many as the yields between two sleeps in perf/results/2026-12-01-overlap.txt"},
    {"openmpi.component.DELAY", 1000, "calls",
     "of a group of MPI before it gets a team, unless coll_torii_delay says another number",
     "measured: a team costs at most a tenth of the time of so many short calls (the run of 2026-12-01 that "
     "perf/results/README.md names)"},
    {"openmpi.delay.BYTES_LIKE_A_CALL", 512, "bytes", "that count as one short call more",
     "perf/results/2026-11-26-inside-open-mpi.txt: torii saves 0.1 to 2 us of a short call on 2 CPUs, and about ten "
     "times as much of 4 KiB"},
    {"openmpi.delay.BYTES_UNKNOWN", 4096, "bytes", "counted for a call whose length not all ranks know", "a guess"},
});

/// The value of a constant of kTuned. A wrong name, or a type that cannot hold the value, does not compile.
template <class T>
consteval T tuned(std::string_view name) {
  for (const Tuned& one : kTuned) {
    if (one.name != name) continue;
    const T value = static_cast<T>(one.value);
    if (std::is_integral_v<T> && static_cast<double>(value) != one.value) throw "the type cannot hold this constant";
    return value;
  }
  throw "there is no tuned constant of this name";
}

}  // namespace torii
