# SPDX-License-Identifier: Apache-2.0
# The cases of ./dev verbs on one machine. TORII_TRANSPORT names a fabric, so every rank is a node of its own and shares
# no memory with the others.
# shellcheck shell=bash disable=SC2154  # run_case sets the variables

case_device() {
  limited "$bin/torii-info" >"$output" || fail "torii-info"
  sed -n '/^transports/,/^engines/p' "$output"
  grep -qE "$fabric +works:" "$output" || fail "two processes do not join over $fabric"
  if [[ $fabric == libfabric ]]; then
    grep -qE "verbs;ofi_rxm +usable on $device: chosen" "$output" || fail "verbs;ofi_rxm is not chosen"
  else
    grep -qE "ucx +ib +usable on $device:1: chosen" "$output" || fail "ib is not chosen"
  fi
}

# The numbers of ranks and engines with which a call runs, as RANKSxENGINES. A short run has one pair for each call and
# fabric: over its calls and both fabrics, any value of one meets any value of another.
pairs_of() {
  local at pairs=(2x1 4x4 2x4 4x1)
  if [[ $full == yes ]]; then
    echo {2,4}x{1,2,4}
    return
  fi
  [[ $fabric == libfabric ]] || pairs=(4x4 2x1 4x1 2x4)
  for at in "${!calls[@]}"; do
    [[ ${calls[at]} != "$1" ]] || echo "${pairs[at % 4]}"
  done
}

# case_call CALL: its perf program, which checks every element of the results.
case_call() {
  local pair before sizes=(-b 4 -e 4M -f 32) worst=0
  [[ $full == no ]] || sizes=(-b 4 -e 4M -f 2)
  [[ $1 != barrier ]] || sizes=()
  for pair in $(pairs_of "$1"); do
    before=$(sent_packets)
    if limited "$bin/torii-run" -n "${pair%x*}" -- "$bin/${1}_perf" "${sizes[@]}" --engines "${pair#*x}" -n 1 -w 3 \
      >"$output" 2>&1 && grep -q 'data: OK' "$output" && (($(sent_packets) > before)); then
      echo "$1, $pair ranks x engines: data OK, $(($(sent_packets) - before)) packets"
    else
      echo "$1, $pair ranks x engines: exit code $?, $(($(sent_packets) - before)) packets"
      tail -n 30 "$output"
      worst=1
    fi
  done
  return "$worst"
}

# What is set above makes runs short, but the defaults have to work too.
case_perf() {
  local call code before sizes rows=$scratch/rows
  unset TORII_TRANSPORT TORII_PROVIDER TORII_ARENA TORII_TIMEOUT
  for call in "${calls[@]}"; do
    before=$(sent_packets)
    sizes=(-b 8 -e 1M -f 8)
    [[ $call != barrier ]] || sizes=()
    limited "$bin/${call}_perf" --ranks 2 --transport "$fabric" "${sizes[@]}" --json "$rows" >"$output" 2>&1
    code=$?
    cat "$output"
    ((code == 0)) || fail "$call: exit code $code"
    grep -q 'data: OK' "$output" || fail "$call: the data is not OK"
    (($(sent_packets) > before)) || fail "$call: no packet went over $device"
    grep -qE "^# torii .*emulation of .*$device" "$output" || fail "$call: the header does not say what is emulated"
    grep -q '"host":' "$rows" || fail "$call: there are no rows"
    ! grep -vqE "\"host\":\"[^\"]*emulation of .*$device" "$rows" || fail "$call: a row does not say what is emulated"
    rm "$rows"
    if [[ $full == no ]]; then break; fi
  done
}

# conformance FOLDER FILE FILTER: tests of this file, which must all pass.
conformance() {
  limited "$tests/${1}_tests" --files="tests/$1/$2" --gtest_filter="$3" >"$output" 2>&1
  local code=$?
  grep -E '^\[ +(OK|FAILED|SKIPPED) +\]' "$output"
  if ((code == 0)) && grep -q '^\[  PASSED  \] [1-9]' "$output"; then return; fi
  tail -n 40 "$output"
  fail "$1_tests, $2: exit code $code"
}

case_collectives() {
  local rows='*/node_2_:*/ring_3_:*/rabenseifner_4_'
  [[ $full == no ]] || rows='*/*_2_:*/*_3_:*/*_4_'
  TORII_ENGINES=1 conformance conformance test_collectives.cpp "$rows"
}

case_sends() {
  local some='*.BytesOfAnyLength*:*.AGroupIsNoDeadlock*:*.StartedOnesEnd*:*.CollectivesMayPass*'
  [[ $full == no ]] || some='*'
  TORII_ENGINES=2 conformance conformance test_send_recv.cpp "$some"
}

# A short run plays a third of the scenarios, and not that of case_silent.
case_transport() {
  local row=verbs_ofi_rxm
  [[ $fabric == libfabric ]] || row=ucx_rc
  [[ $full == no ]] || export TORII_TEST_FULL=1
  TORII_TEST_RDMA_ADDRESS=10.7.0.1 conformance fabric test_processes.cpp "*/$row"
}

case_silent() {
  local engines row='verbs;ofi_rxm'
  [[ $fabric == libfabric ]] || row=ucx_rc
  export TORII_TEST_RDMA_ADDRESS=10.7.0.1
  for engines in 1 4; do
    limited "$bin/torii-run" -n 3 -- "$tests/fabric_rank" "$row" "$engines" silent_peer 1 >"$output" 2>&1
    cat "$output"
    (($(grep -c 'has played silent_peer' "$output") == 3)) || fail "$engines engines"
  done
  echo "packets that found no receive, and came again: $(counter send_rnr_err)"
}

case_deaths() {
  local some='*.ADeathEndsEvery*:*.AnAbort*'
  [[ $full == no ]] || some+=':*.ADeathAtARandom*:*BroadcastsFromAllRanks:*.CallsThatDiffer*'
  # These have deadlines of 1 and 2 s, within which ranks on emulated CPUs do not even join.
  ((patience > 1)) || some+=':*.AStoppedRank*:*.ARankThatNeverComes*'
  TORII_ENGINES=2 conformance processes test_node_failures.cpp "$some"
}

# The limit of locked memory binds users other than root. They may not be allowed into the folders above the tree.
case_memlock() {
  local code
  chmod 755 "$scratch"
  mkdir "$scratch/tree"
  mount --bind "$tree" "$scratch/tree"
  (
    ulimit -l 64
    unset TORII_TEST_MODULES
    export LD_LIBRARY_PATH=$scratch/tree/build/release/lib:$scratch/tree/build/release/lib/torii
    cd "$scratch/tree/build/release/bin" || exit
    limited setpriv --reuid=65534 --regid=65534 --clear-groups ./torii-run -n 2 -- ./all_reduce_perf -b 4 -e 4
  ) >"$output" 2>&1
  code=$?
  umount "$scratch/tree"
  cat "$output"
  ((code != 0 && code != 124)) || fail "the exit code is $code"
  grep -q 'raise the limit of locked memory, ulimit -l' "$output" || fail "the message does not name the limit"
}
