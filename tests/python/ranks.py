# SPDX-License-Identifier: Apache-2.0
# Ranks as processes: a test names a function of its own file, which every rank of a job runs.
"""Helpers of the tests of the Python package."""
import os
import subprocess
import sys

TIMEOUT_S = 60


def start(*command, **environment):
    """Runs a Python program with the package in its path; returns code, stdout and stderr."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=TIMEOUT_S,
                          env=dict(os.environ, **environment))
    return done.returncode, done.stdout, done.stderr


def job(file, function, ranks=2, options=(), **environment):
    """Runs `function` of `file` on so many ranks. Returns stdout; a rank that fails fails the test."""
    code, out, errors = start("-m", "torii.run", "-n", str(ranks), *options, file, function, **environment)
    assert code == 0, f"{function} ended with {code}:\n{out}\n{errors}"
    return out


def main(functions):
    """Called by a file of tests that runs as a rank."""
    functions[sys.argv[1]]()
