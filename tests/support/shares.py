# SPDX-License-Identifier: Apache-2.0
# A plugin of pytest: a short run of an entry of ctest with SHARES has a part of its cases, drawn as is_case_of_run() in
# tests/support/test_run.cpp draws.
"""Leaves cases to other runs."""
import os


def is_case_of_run(name):
    shares = os.environ.get("TORII_TEST_SHARES")
    run = os.environ.get("TORII_TEST_RUN")
    if shares is None or run is None or "TORII_TEST_FULL" in os.environ:
        return True
    most = 2**64 - 1
    draw = (1 + int(run)) * 0x9E3779B97F4A7C15 & most
    for letter in name.encode():
        draw = (draw ^ letter) * 0x100000001B3 & most
    return (draw ^ draw >> 32) % int(shares) == 0


def pytest_collection_modifyitems(config, items):
    here = [item for item in items if is_case_of_run(item.name)]
    left = [item for item in items if item not in here]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = here


def pytest_sessionfinish(session, exitstatus):
    """A run that has none of the cases has passed."""
    if exitstatus == 5 and "TORII_TEST_SHARES" in os.environ:
        session.exitstatus = 0
