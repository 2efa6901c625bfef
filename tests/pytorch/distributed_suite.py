# SPDX-License-Identifier: Apache-2.0
# PyTorch's own test of its backends, distributed_test.py, over Gloo or over torii. PyTorch installs the tests but not
# the program that runs them; this is one. `distributed_suite.py --help` says how.
"""Runs torch.testing._internal.distributed.distributed_test with ranks that are forked processes."""
import argparse
import importlib.util
import logging
import os
import re
import sys
import tempfile
import time
import types
import unittest

# What the suite's skips ask for; with torii the tests for Gloo run too, since torii can do what Gloo can, and those of
# all_to_all, which Gloo cannot.
REPLACED = (
    (r'BACKEND != "gloo"', 'BACKEND not in ("gloo", "torii")'),
    (r'BACKEND == "mpi" or BACKEND == "gloo"', 'BACKEND in ("mpi", "gloo", "torii")'),
    (r'BACKEND != "mpi", "Only MPI', 'BACKEND not in ("mpi", "torii"), "Only MPI'),
    (r"if BACKEND not in backends:", 'if BACKEND not in backends and (BACKEND != "torii" or "gloo" not in backends):'),
)

# How often the suite looks for ranks.
LOOK_S = 0.005

# PyTorch's names for how a rank says that a test is not for it.
SKIPPED, PASSED, FAILED = "skipped", "passed", "failed"


def add_stand_ins():
    """Debian has no expecttest, of which the suite needs a base class only."""
    if importlib.util.find_spec("expecttest") is None:
        module = types.ModuleType("expecttest")
        module.ACCEPT = False
        module.TestCase = unittest.TestCase
        sys.modules["expecttest"] = module


def load_suite(backend):
    """The module distributed_test, whose skips know the backend."""
    add_stand_ins()
    from torch.nn.parallel import _replicated_tensor_ddp_utils as replicated
    # ReplicatedTensor cannot be imported on Python 3.11 (a mutable default of a dataclass).
    replicated._set_ddp_with_replicated_tensor = lambda value: None
    from torch.testing._internal import common_distributed
    name = "torch.testing._internal.distributed.distributed_test"
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with open(spec.origin, encoding="utf-8") as file:
        text = file.read()
    # The suite looks every 0.1 s whether ranks have come, and whether they have ended: most of the time of its tests.
    text = text.replace("time.sleep(0.1)", f"time.sleep({LOOK_S})")
    clock = types.ModuleType("time")
    clock.__dict__.update(time.__dict__, sleep=lambda seconds: time.sleep(min(seconds, LOOK_S)))
    common_distributed.time = clock
    if backend == "torii":
        import torch.distributed as dist
        import torii.torch
        dist.monitored_barrier = torii.torch.monitored_barrier
        for feature in ("ddp", "subgroup"):
            common_distributed.DistTestCases.backend_feature[feature].add("torii")
        for before, after in REPLACED:
            text, count = re.subn(re.escape(before), after, text)
            if count == 0:
                sys.exit(f"distributed_test.py of this PyTorch has no {before!r}; the driver does not know it")
    exec(compile(text, spec.origin, "exec"), module.__dict__)
    return module


def make_case(suite):
    """The suite's tests as a unittest class whose ranks are forked, since a new interpreter takes seconds to load."""
    import torch

    class Suite(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    Suite.__qualname__ = "Suite"
    return Suite


class Results(unittest.TestResult):
    """Counts, and says each result as it comes."""

    def __init__(self, is_quiet):
        super().__init__()
        self.counts = {PASSED: [], SKIPPED: [], FAILED: []}
        self.is_quiet = is_quiet
        self.began = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def say(self, test, result, text=""):
        name = test.id().split(".")[-1]
        self.counts[result].append(name)
        if result != SKIPPED and not self.is_quiet or result == FAILED:
            print(f"{result:8}{time.monotonic() - self.began:6.1f} s  {name}  {text}", flush=True)

    def addSuccess(self, test):
        self.say(test, PASSED)

    def addSkip(self, test, reason):
        self.say(test, SKIPPED, reason)

    def addError(self, test, err):
        self.say(test, FAILED, str(err[1]))

    addFailure = addError


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", default="torii", choices=("torii", "gloo"))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", default="", help="a regular expression: only tests whose names match it")
    parser.add_argument("--names", help="a file for the names of tests that passed")
    parser.add_argument("--expect", help="such a file; a test of it that does not pass now fails the run")
    parser.add_argument("--quiet", action="store_true", help="say failures and the counts only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BACKEND=options.backend, WORLD_SIZE=str(options.ranks), TEMP_DIR=folder,
                          MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1", INIT_METHOD=f"file://{folder}/shared_init_file")
        return run(options)


def run(options):
    logging.disable(logging.INFO)
    case = make_case(load_suite(options.backend))
    names = [name for name in unittest.TestLoader().getTestCaseNames(case) if re.search(options.only, name)]
    results = Results(options.quiet)
    for name in names:
        case(name).run(results)
    counts = results.counts
    missing = []
    if options.expect:
        with open(options.expect, encoding="utf-8") as file:
            missing = sorted(set(file.read().split()) & set(names) - set(counts[PASSED]))
    for name in missing:
        print(f"missing: {name} passed in {options.expect}")
    if options.names:
        with open(options.names, "w", encoding="utf-8") as file:
            file.write("".join(name + "\n" for name in counts[PASSED]))
    print(f"{options.backend}, {options.ranks} ranks: " + ", ".join(f"{len(counts[key])} {key}" for key in counts))
    return 1 if counts[FAILED] or missing or not counts[PASSED] else 0


if __name__ == "__main__":
    sys.exit(main())
