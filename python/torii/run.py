# SPDX-License-Identifier: Apache-2.0
# Starts the ranks of a Python program: by torii-run if it is there, otherwise, or to mark lines, by itself.
"""python3 -m torii.run -n 4 script.py [args]: starts the ranks of a Python program on this machine.

The job ends when all ranks have ended. If one fails, the others get a second to report, then SIGTERM, then SIGKILL.
SIGINT, SIGTERM and SIGHUP are passed on to the ranks; a second one kills them. The exit code is 0, that of the first
failing rank, 128 + the signal that ended it, 4 after --timeout, or 2 for a bad command line.
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
_CODE_PEER_LOST = 5
_CODE_TIMEOUT = 4
_CODE_BAD_INPUT = 2
_PR_SET_PDEATHSIG = 1
_SI_KERNEL = 0x80
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


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
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
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
        *lines, self.rests[stream] = (self.rests[stream] + data).split(b"\n")
        self.print(stream, lines)
        if not data:
            self.pass_on_rest(stream)
        return bool(data)

    def pass_on_rest(self, stream):
        """Prints a line without an end."""
        if self.rests[stream]:
            self.print(stream, [self.rests[stream]])
        self.rests[stream] = b""

    def print(self, stream, lines):
        to = sys.stdout.buffer if stream is self.process.stdout else sys.stderr.buffer
        for line in lines:
            to.write(b"[%d] %s\n" % (self.number, line))
        to.flush()


class Job:
    """All ranks, from start to end, by the rules of torii-run."""

    def __init__(self, options, command, environments, signals):
        self.deadline = time.monotonic() + options.timeout if options.timeout else None
        self.code = 0
        self.goes_on = options.on_failure == "continue"
        self.signals = signals
        self.ended = set()
        self.end_at = self.kill_at = None
        self.is_ending = False  # the ranks were told to end; how they end does not matter
        self.is_interrupted = self.has_end = self.survivor_failed = False
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

    def end_all(self):
        self.end_at = None
        if self.is_ending:
            return
        self.is_ending = True
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)  # a stopped process does not hear SIGTERM
        self.kill_at = time.monotonic() + _TERMINATE_S

    def on_end(self, rank, code):
        self.has_end = self.has_end or code == 0
        if code == 0 or self.is_ending:
            return
        how = f"with code {code}" if code > 0 else f"by signal {-code}"
        print(f"torii.run: rank {rank} ended {how}", file=sys.stderr)
        self.survivor_failed = self.survivor_failed or (self.code != 0 and code > 0)
        if self.code in (0, _CODE_PEER_LOST):  # a lost peer is a consequence
            self.code = code if code > 0 else 128 - code
        if not self.goes_on and self.end_at is None:
            self.end_at = time.monotonic() + _REPORT_S

    def look_at_ends(self):
        """Notes the ranks that have ended. Returns whether one still runs."""
        codes = [rank.process.poll() for rank in self.ranks]
        ended = [rank for rank, code in enumerate(codes) if code is not None and rank not in self.ended]
        # Of several, those that a signal has ended are more likely the cause.
        for rank in sorted(ended, key=lambda rank: codes[rank] >= 0):
            self.ended.add(rank)
            self.on_end(rank, codes[rank])
        return None in codes

    def hear_signals(self):
        """The ranks handle the first signal; the second one ends them."""
        while (info := signal.sigtimedwait(self.signals, 0)) is not None:
            if self.is_interrupted:
                self.send(signal.SIGKILL)
            elif info.si_code != _SI_KERNEL:  # a terminal's signal has reached the ranks already
                self.send(info.si_signo)
            self.is_interrupted = True

    def look_at_deadlines(self):
        now = time.monotonic()
        if self.deadline is not None and now > self.deadline:
            print("torii.run: the timeout is over", file=sys.stderr)
            self.deadline = None
            self.code = self.code or _CODE_TIMEOUT
            self.end_all()
        if self.end_at is not None and now > self.end_at:
            self.end_all()
        if self.kill_at is not None and now > self.kill_at:
            self.kill_at = None
            self.send(signal.SIGKILL)

    def pass_on(self, wait_s):
        """Prints what has come. Returns whether there was anything."""
        ready = self.selector.select(wait_s)
        for key, _ in ready:
            if not key.data.pass_on(key.fileobj):
                self.selector.unregister(key.fileobj)
        return bool(ready)

    def run(self):
        while self.look_at_ends():
            self.hear_signals()
            self.look_at_deadlines()
            self.pass_on(0.02)
        # What the ranks have printed is in the pipes. Processes that they leave behind may keep those open for ever.
        give_up = time.monotonic() + _REPORT_S
        while self.selector.get_map() and self.pass_on(0) and time.monotonic() < give_up:
            pass
        for key in list(self.selector.get_map().values()):
            key.data.pass_on_rest(key.fileobj)
        survived = self.has_end and not (self.survivor_failed or self.is_ending or self.is_interrupted)
        return 0 if self.goes_on and survived else self.code


def run_here(options, command):
    """Starts the ranks from this process; they meet at a file that only this user can read."""
    # Signals that this process was told to ignore stay ignored.
    signals = {number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with tempfile.TemporaryDirectory(prefix="torii-") as folder:
        common = dict(os.environ, WORLD_SIZE=str(options.n), TORII_RENDEZVOUS=f"file:{folder}/job")
        # Inside a rank of torii-run these would make the new ranks join that job.
        for name in ("TORII_JOB_FD", "TORII_RANK", "TORII_RANKS"):
            common.pop(name, None)
        environments = [dict(common, RANK=str(rank)) for rank in range(options.n)]
        return Job(options, command, environments, signals).run()


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
