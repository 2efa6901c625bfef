# SPDX-License-Identifier: Apache-2.0
# Starts the ranks of a Python program: by torii-run if it is there, otherwise, or to mark lines, by itself.
"""python3 -m torii.run -n 4 script.py [args]: starts the ranks of a Python program on this machine.

The job ends when all ranks have ended. If one fails, the others get a second to report, then SIGTERM, then SIGKILL.
The exit code is 0, that of the first failing rank, 128 + the signal that ended it, 4 after --timeout, or 2 for a bad
command line.
"""
import argparse
import ctypes
import os
import pathlib
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

_REPORT_S = 1.0  # what the other ranks have to report after the first failure
_TERMINATE_S = 3.0  # from SIGTERM to SIGKILL
_CODE_TIMEOUT = 4
_CODE_BAD_INPUT = 2
_PR_SET_PDEATHSIG = 1


def find_torii_run():
    """The path of torii-run: of the same build or installation, or in PATH. None if there is none."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in (package.parents[1], package.parents[3]):
        program = folder / "bin" / "torii-run"
        if os.access(program, os.X_OK):
            return str(program)
    return shutil.which("torii-run")


class Rank:
    """A process of the job. With `is_marked` its output comes through a pipe, line by line."""

    def __init__(self, number, command, environment, is_marked):
        pipe = subprocess.PIPE if is_marked else None
        launcher = os.getpid()

        def end_with_launcher():
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != launcher:
                os._exit(1)

        self.number = number
        self.process = subprocess.Popen(command, env=environment, stdin=None if number == 0 else subprocess.DEVNULL,
                                        stdout=pipe, stderr=pipe, preexec_fn=end_with_launcher)
        self.rests = {}
        if is_marked:
            self.rests = {self.process.stdout: b"", self.process.stderr: b""}

    def pass_on(self, stream):
        """Prints the whole lines that have come. Returns False at the end of the stream."""
        data = os.read(stream.fileno(), 65536)
        *lines, rest = (self.rests[stream] + data).split(b"\n")
        if not data and rest:
            lines, rest = [rest], b""
        self.rests[stream] = rest
        to = sys.stdout.buffer if stream is self.process.stdout else sys.stderr.buffer
        for line in lines:
            to.write(b"[%d] %s\n" % (self.number, line))
        to.flush()
        return bool(data)


class Job:
    """All ranks, from start to end."""

    def __init__(self, options, command, environments):
        self.deadline = time.monotonic() + options.timeout if options.timeout else None
        self.code = 0
        self.goes_on = options.on_failure == "continue"
        self.next_signal = None  # (time, signal) for those that still run after a failure
        self.selector = selectors.DefaultSelector()
        self.ranks = []
        for number, environment in enumerate(environments):
            rank = Rank(number, command, environment, options.prefix)
            self.ranks.append(rank)
            for stream in rank.rests:
                os.set_blocking(stream.fileno(), False)
                self.selector.register(stream, selectors.EVENT_READ, rank)

    def send(self, number):
        for rank in self.ranks:
            if rank.process.poll() is None:
                rank.process.send_signal(number)

    def fail(self, code, after_s):
        if self.code == 0:
            self.code = code
            self.next_signal = (time.monotonic() + after_s, signal.SIGTERM)

    def look_at_ends(self):
        """Notes the first failure. Returns whether a rank still runs."""
        codes = [rank.process.poll() for rank in self.ranks]
        for number, code in enumerate(codes):
            if code and self.code == 0:
                how = f"with code {code}" if code > 0 else f"by signal {-code}"
                print(f"torii.run: rank {number} ended {how}", file=sys.stderr)
                code = code if code > 0 else 128 - code
                if self.goes_on:
                    self.code = code
                else:
                    self.fail(code, _REPORT_S)
        return None in codes

    def run(self):
        while self.look_at_ends() or self.selector.get_map():
            now = time.monotonic()
            if self.deadline is not None and now > self.deadline:
                print("torii.run: the timeout is over", file=sys.stderr)
                self.deadline = None
                self.fail(_CODE_TIMEOUT, 0)
            if self.next_signal is not None and now > self.next_signal[0]:
                self.send(self.next_signal[1])
                self.next_signal = (now + _TERMINATE_S, signal.SIGKILL)
            for key, _ in self.selector.select(0.02):
                if not key.data.pass_on(key.fileobj):
                    self.selector.unregister(key.fileobj)
        return self.code


def run_here(options, command):
    """Starts the ranks from this process; they meet at a file that only this user can read."""
    with tempfile.TemporaryDirectory(prefix="torii-") as folder:
        common = dict(os.environ, WORLD_SIZE=str(options.n), TORII_RENDEZVOUS=f"file:{folder}/job")
        job = Job(options, command, [dict(common, RANK=str(rank)) for rank in range(options.n)])

        def forward(number, _):
            job.fail(128 + number, 0)
            job.send(number)
            job.next_signal = (time.monotonic() + _TERMINATE_S, signal.SIGKILL)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, forward)
        return job.run()


def parse(arguments):
    parser = argparse.ArgumentParser("python3 -m torii.run", description=__doc__.splitlines()[0],
                                     epilog="example: python3 -m torii.run -n 4 train.py --steps 100")
    parser.add_argument("-n", type=int, required=True, help="number of ranks, 1 to 1024")
    parser.add_argument("--timeout", type=float, default=0, metavar="S", help="end the job after S seconds, code 4")
    parser.add_argument("--on-failure", choices=["end", "continue", "replace"], default="end",
                        help="what happens when a rank fails: the others end, they continue, or it is replaced by a "
                        "new process (default: end)")
    parser.add_argument("--replacements", type=int, default=3, metavar="N",
                        help="with --on-failure replace: this many, then a failure ends the job (default: 3)")
    parser.add_argument("--prefix", action="store_true", help="mark each line of output with its rank: [2] ...")
    parser.add_argument("-m", action="store_true", help="the program is a module, as for python3 -m")
    parser.add_argument("program", help="a script, or a module with -m; its arguments follow")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="args")
    options = parser.parse_args(arguments)
    if not 1 <= options.n <= 1024:
        parser.error(f"-n is {options.n}; it must be 1 to 1024")
    if options.timeout < 0:
        parser.error(f"--timeout is {options.timeout}; it must not be negative")
    return options


def main(arguments=None):
    options = parse(arguments)
    command = [sys.executable] + (["-m"] if options.m else []) + [options.program] + options.arguments
    launcher = find_torii_run()
    if launcher is None or options.prefix:
        if options.on_failure == "replace":
            print("torii.run: --on-failure replace needs torii-run, which "
                  + ("has no --prefix" if options.prefix else "is not installed"), file=sys.stderr)
            return _CODE_BAD_INPUT
        return run_here(options, command)
    flags = ["-n", str(options.n), "--on-failure", options.on_failure]
    if options.on_failure == "replace":
        flags += ["--replacements", str(options.replacements)]
    if options.timeout:
        flags += ["--timeout", str(options.timeout)]
    sys.stdout.flush()
    os.execv(launcher, [launcher, *flags, "--", *command])


if __name__ == "__main__":
    sys.exit(main())
