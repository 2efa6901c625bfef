# SPDX-License-Identifier: Apache-2.0
# PyTorch's distributed_test.py over torii: what passes with Gloo passes, and so does all_to_all.
"""The driver distributed_suite.py, in part or, with full counts, as a whole beside Gloo."""
import os
import re
import subprocess
import sys

import pytest
from ranks import FULL

DRIVER = os.path.join(os.path.dirname(__file__), "distributed_suite.py")
# One test of each kind, those of all_to_all, and those of timeouts and monitored barriers.
SHORT = ("test_(all_reduce_sum|all_reduce_coalesced_group_m|all_gather|all_gather_coalesced_simple|all_to_all|"
         "barrier_timeout_full|batch_isend_irecv_gloo|broadcast|DistributedDataParallel_SyncBatchNorm|"
         "ddp_uneven_inputs|gather|get_future|isend|monitored_barrier_gloo|reduce_max|scatter|send_recv_any_source|"
         "sparse_all_reduce_sum|all_reduce_complex|gather_object|ddp_sync_module_states)$")


def run(*options):
    done = subprocess.run([sys.executable, DRIVER, "--quiet", *options], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL)
    print(done.stdout)
    counts = re.search(r"(\d+) passed, \d+ skipped, (\d+) failed", done.stdout)
    return done.returncode, int(counts[1]) if counts else 0


@pytest.mark.skipif(FULL, reason="the whole suite runs instead")
def test_short_part():
    code, passed = run("--ranks", "2", "--only", SHORT)
    assert code == 0 and passed >= 15


@pytest.mark.skipif(not FULL, reason="takes a quarter of an hour")
@pytest.mark.parametrize("ranks", ("2", "3", "4"))
def test_all_that_gloo_passes(ranks, tmp_path):
    names = str(tmp_path / "gloo")
    code, with_gloo = run("--backend", "gloo", "--ranks", ranks, "--names", names)
    assert code == 0 and with_gloo >= 90
    code, with_torii = run("--ranks", ranks, "--expect", names)
    assert code == 0 and with_torii >= with_gloo + 9
