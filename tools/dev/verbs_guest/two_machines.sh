# SPDX-License-Identifier: Apache-2.0
# The cases of ./dev verbs on two machines with one wire between them: rank 0 on machine 1, rank 1 on machine 2.
# shellcheck shell=bash disable=SC2154  # run_case sets the variables

export RANK=$((machine - 1)) WORLD_SIZE=2 MASTER_ADDR=10.7.0.1 MASTER_PORT=29500
export TORII_JOB_TOKEN=0123456789abcdef0123456789abcdef

# sum_well MOST ENGINES: the rank of this machine sums vectors of up to MOST bytes, and all must end well.
sum_well() {
  local before code
  meet begin
  before=$(sent_packets)
  limited "$bin/all_reduce_perf" -b 4 -e "$1" -f 32 --engines "$2" -n 1 -w 3 >"$output" 2>&1
  code=$?
  cat "$output"
  echo "$(($(sent_packets) - before)) packets"
  ((code == 0)) || fail "the exit code is $code"
  ((machine == 2)) || grep -q 'data: OK' "$output" || fail "the data is not OK"
  (($(sent_packets) > before)) || fail "no packet went over $device"
}

case_joined() { sum_well 4M 4; }

# sum_under KIND ARGUMENT...: the wire is worse in both directions, also for TCP.
sum_under() {
  tc qdisc add dev "$interface" root netem limit 10000 "$@" || fail "tc"
  (sum_well 128K 1) || exit
  tc -s qdisc show dev "$interface"
}

case_lossy() {
  sum_under loss 1%
  tc -s qdisc show dev "$interface" | grep -q 'dropped [1-9]' || fail "no packet was lost"
}

# Equal for all packets: these devices take one that overtakes another for a loss.
case_delayed() { sum_under delay 5ms; }

# start_rank COMMAND...: the rank of this machine, which both machines wait for until it is in the middle of its work.
start_rank() {
  local before tries
  meet begin
  before=$(sent_packets)
  "$@" >"$output" 2>&1 &
  rank=$!
  for ((tries = 0; tries < 600 * patience; tries++)); do
    if (($(sent_packets) > before + 1000)); then break; fi
    kill -0 "$rank" 2>/dev/null || break
    sleep 0.05
  done
  if (($(sent_packets) <= before + 1000)); then
    cat "$output"
    fail "the rank has not sent 1000 packets"
  fi
  meet working
}

sum_endlessly() { start_rank "$bin/all_reduce_perf" -b 16K -e 16K --engines 1 -n 1000000 -w 3; }

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# Waits for the end of this machine's rank, and says how long after the fault it came. A rank that hangs is killed.
wait_for_rank() {
  local begin_ms
  begin_ms=$(now_ms)
  (sleep $((60 * patience)); kill -KILL "$rank") 2>/dev/null &
  code=0
  wait "$rank" || code=$?
  took_ms=$(($(now_ms) - begin_ms))
  cat "$output"
  echo "last words $(($(date -r "$output" +%s%3N) - begin_ms)) ms after the fault; exit code $code after $took_ms ms"
}

# expect_end CODES TEXT MOST_MS: one of these exit codes and this text, in time.
expect_end() {
  [[ " $1 " == *" $code "* ]] || fail "the exit code is $code and none of: $1"
  grep -qE "$2" "$output" || fail "the message does not hold '$2'"
  ((took_ms <= $3)) || fail "the end came after $took_ms ms; at most $3 are right"
}

# Machine 2 brings the fault about, the other hears of it.
fault() {
  if ((machine == 2)); then
    "$@" || fail "$*"
    : >"/run/verbs/$name.fault"
    return
  fi
  while [[ ! -e /run/verbs/$name.fault ]]; do sleep 0.01; done
}

kill_rank() { kill -KILL "$rank"; }

case_killed() {
  local rank code took_ms
  sum_endlessly
  fault kill_rank
  wait_for_rank
  if ((machine == 2)); then return; fi
  expect_end 5 'peer_lost: rank 1 on host ' "$((1000 * patience))"
}

readonly deadline_s=$((patience == 1 ? 5 : 10))

case_link_down() {
  local rank code took_ms
  export TORII_TIMEOUT=$deadline_s
  sum_endlessly
  fault ip link set "$interface" down
  wait_for_rank
  expect_end 4 'timeout: no progress for ' "$(((deadline_s + 3 * patience) * 1000))"
}

# The kernel may keep a device that is in use until its last user has closed it: then the command waits, and the ranks
# may work on. Otherwise they see errors. They may not hang, so they work for a limited time. ofi_rxm may end the rank
# whose device goes (docs/transports.md, Leaving): then its peer must notice that death.
delete_device() { rdma link delete "$device" & }

case_device_deleted() {
  local rank code took_ms
  export TORII_TIMEOUT=$deadline_s TORII_ENGINES=1
  start_rank "$tests/failure_rank" work 0 "$((2 * deadline_s))000000" 4096
  fault delete_device
  wait_for_rank
  if ((machine == 2 && code == 139)) && [[ $fabric == libfabric ]]; then
    echo "ofi_rxm has ended the rank with a segmentation fault"
    return
  fi
  expect_end '0 1' 'died during|the transport failed|no progress for|has worked' \
    "$(((2 * deadline_s + 3 * patience) * 1000))"
}
