# SPDX-License-Identifier: Apache-2.0
# The cases of ./dev verbs, read on the host and in the machines: a case is FABRIC-WHAT.
# shellcheck shell=bash disable=SC2034  # those who read this use the variables

# The collectives that have a perf program: CALL_perf. Every element of every result is checked.
readonly calls=(all_reduce alltoall broadcast reduce_scatter all_gather barrier exscan gather reduce scan scatter)
# Those of a run without --full. They come first, so that they have all pairs of ranks and engines (pairs_of).
readonly calls_short=("${calls[@]:0:4}")

# Cases on one machine, in this order, and on two.
readonly on_one=(device "${calls[@]}" perf collectives sends transport silent deaths memlock)
readonly on_two=(joined lossy delayed killed link_down device_deleted)

declare -rA about=(
  [device]="torii-info finds the device and two processes join over it"
  [barrier]="barrier_perf with every pair of ranks and engines"
  [perf]="all_reduce_perf as users call it; its header and rows say emulation (with --full, all perf programs)"
  [collectives]="conformance of collectives: every element against the verifier's expression"
  [sends]="conformance of sends and receives"
  [transport]="the scenarios of the transport interface, with ranks as processes"
  [silent]="a rank takes nothing for 4 s, with more notices under way to it than receives are posted: others go on"
  [deaths]="deaths and aborts, on KVM also ranks that stop or are late: one cause on all survivors"
  [memlock]="a user who may lock 64 KiB gets a message that names the limit"
  [joined]="two machines join over TCP and sum"
  [lossy]="1 % of all packets is lost: the result is right, and nobody sees an error"
  [delayed]="every packet takes 5 ms more: the result is right, and nobody sees an error"
  [killed]="kill -9 of rank 1: rank 0 ends with peer_lost, which names rank 1"
  [link_down]="ip link set down: both ranks end with timeout by the deadline"
  [device_deleted]="rdma link delete: both ranks end in time, well if the kernel keeps the device so long"
)

# is_short NAME: whether a run without --full has this case.
is_short() {
  local call
  for call in "${calls[@]}"; do
    [[ ${1#*-} == "$call" ]] || continue
    [[ " ${calls_short[*]} " == *" $call "* ]]
    return
  done
}

# about_case NAME: a line on it.
about_case() {
  local what=${1#*-}
  printf '%s\n' "${about[$what]-${what}_perf, 4 B to 4 MiB, every element checked}"
}

# cases_on one|two: the names of the cases on so many machines.
cases_on() {
  local -n list=on_$1
  local fabric what
  for fabric in libfabric ucx; do
    for what in "${list[@]}"; do echo "$fabric-$what"; done
  done
}
