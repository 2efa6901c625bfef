# SPDX-License-Identifier: Apache-2.0
# python3 -m torii.run, by torii-run and by itself (--prefix, and where there is no torii-run).
"""The launcher of the Python package."""
import os
import signal
import subprocess
import sys
import time

import pytest
import ranks

# Hides torii-run from the launcher.
ALONE = "import sys, torii.run as r; r.find_torii_run = lambda: None; sys.exit(r.main(sys.argv[1:]))"
WAYS = {"torii_run": ["-m", "torii.run"], "alone": ["-c", ALONE]}


def program(text):
    """A program of a rank, as the arguments of -m torii.run."""
    return [__file__, text]


@pytest.fixture(name="way", params=list(WAYS))
def fixture_way(request):
    return WAYS[request.param]


def test_ranks_join(way):
    code, out, errors = ranks.start(*way, "-n", "3", *program("say(torii.world().ranks)"))
    assert code == 0 and out.split() == ["3"] * 3, errors


def test_exit_code_of_the_first_failure(way):
    text = "sys.exit(7) if torii.world().rank == 1 else time.sleep(30)"
    begin = time.monotonic()
    code, _, errors = ranks.start(*way, "-n", "3", *program(text))
    assert code == 7 and "rank 1" in errors and time.monotonic() - begin < 20


def test_others_continue(way):
    text = "sys.exit(5) if torii.world().rank == 1 else (time.sleep(2), say('through'))"
    code, out, errors = ranks.start(*way, "-n", "2", "--on-failure", "continue", *program(text))
    assert (code, out) == (0, "through\n") and "ended with code 5" in errors, errors


@pytest.mark.parametrize(("deaths", "end", "expected"), [(1, 0, 0), (2, 0, 0), (1, 7, 137), (3, 0, 137)])
def test_code_of_survivors(deaths, end, expected):
    text = f"""
rank = torii.world().rank
time.sleep(0.1 * rank)
os.kill(os.getpid(), 9) if rank < {deaths} else None
time.sleep(0.5)
sys.exit({end} if rank == 2 else 0)"""
    code, _, errors = ranks.start(*WAYS["alone"], "-n", "3", "--on-failure", "continue", *program(text))
    assert code == expected, errors


def test_replacing_needs_torii_run():
    code, _, errors = ranks.start(*WAYS["alone"], "-n", "2", "--on-failure", "replace", *program("pass"))
    assert code == 2 and "needs torii-run, which is not installed" in errors
    code, _, errors = ranks.start(*WAYS["torii_run"], "-n", "2", "--on-failure", "replace", "--replacements", "1",
                                  *program("sys.exit(6)"))
    assert code == 6 and "replacement 1 of 1" in errors


def test_signal(way):
    text = "os.kill(os.getpid(), 9) if torii.world().rank == 1 else time.sleep(30)"
    code, _, errors = ranks.start(*way, "-n", "2", *program(text))
    assert code == 128 + 9 and "signal 9" in errors


def test_timeout(way):
    code, _, errors = ranks.start(*way, "-n", "2", "--timeout", "1", *program("time.sleep(30)"))
    assert code == 4, errors


def test_rank_that_ignores_sigterm(way):
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.exit(3) if torii.world().rank == 0 else time.sleep(50)"
    code, _, _ = ranks.start(*way, "-n", "2", *program(text))
    assert code == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt(way, number):
    """Ctrl-C goes to the whole group, as a terminal does it."""
    text = "torii.world().barrier(); say('up'); time.sleep(30)"
    with subprocess.Popen([sys.executable, *way, "-n", "2", *program(text)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, start_new_session=True) as launcher:
        for _ in range(2):
            assert launcher.stdout.readline() == b"up\n"
        begin = time.monotonic()
        os.killpg(launcher.pid, number)
        assert launcher.wait(ranks.TIMEOUT_S) != 0
        assert time.monotonic() - begin < 10


# SIGTERM is handled at leisure: for longer than the others get after a failure, which is less here.
SAVES = """
def save(*_):
    time.sleep(1)
    say("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
say("up")
time.sleep(30)"""
HASTY = ALONE.replace("sys.exit", "r._TERMINATE_S = 0.2; sys.exit")


def test_ranks_may_take_their_time_after_a_signal():
    command = [sys.executable, "-c", HASTY, "-n", "2", *program(SAVES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as launcher:
        assert [launcher.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
        launcher.send_signal(signal.SIGTERM)
        assert launcher.stdout.read() == b"saved\n" * 2
        assert launcher.wait(ranks.TIMEOUT_S) == 0


def test_second_signal_kills():
    text = "signal.signal(signal.SIGTERM, signal.SIG_IGN); say('up'); time.sleep(50)"
    command = [sys.executable, *WAYS["alone"], "-n", "2", *program(text)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as launcher:
        assert [launcher.stdout.readline() for _ in range(2)] == [b"up\n"] * 2
        launcher.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert launcher.poll() is None
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(ranks.TIMEOUT_S) == 128 + 9


@pytest.mark.parametrize("inner", [["-m", "torii.run", "--prefix"], ["-c", ALONE]], ids=["prefix", "alone"])
def test_inside_a_rank(inner):
    """The ranks of the inner job do not join the outer one."""
    command = [*inner, "-n", "2", *program("say(torii.world().ranks)")]
    text = f"sys.exit(subprocess.run([sys.executable, *{command!r}], check=False).returncode)"
    code, out, errors = ranks.start(*WAYS["torii_run"], "-n", "1", *program(text))
    assert code == 0 and out.count("2\n") == 2, errors


def test_prefix_does_not_wait_for_background_processes():
    """They keep the pipes of the ranks open."""
    text = "child = subprocess.Popen(['sleep', '40']); say(child.pid); os.write(1, b'no end')"
    begin = time.monotonic()
    code, out, errors = ranks.start("-m", "torii.run", "-n", "2", "--prefix", *program(text))
    assert code == 0 and time.monotonic() - begin < 20, errors
    ends = [line for line in out.splitlines() if "no end" in line]
    assert sorted(ends) == ["[0] no end", "[1] no end"]
    for line in set(out.splitlines()) - set(ends):
        os.kill(int(line.split()[1]), signal.SIGKILL)


def test_ranks_end_with_the_launcher(way):
    text = "torii.world().barrier(); say(os.getpid()); time.sleep(30)"
    with subprocess.Popen([sys.executable, *way, "-n", "2", *program(text)], stdout=subprocess.PIPE) as launcher:
        processes = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.kill()
        launcher.wait(ranks.TIMEOUT_S)
        assert launcher.stdout.read() == b""  # until both have closed it
    end = time.monotonic() + 20
    while any(is_alive(process) for process in processes):
        assert time.monotonic() < end
        time.sleep(0.01)


def is_alive(process):
    """A zombie is not: nobody may have waited for it yet."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_prefix():
    text = "say('one\\ntwo'); os.write(2, b'no end')"
    code, out, errors = ranks.start("-m", "torii.run", "-n", "2", "--prefix", *program(text))
    assert code == 0
    assert sorted(out.splitlines()) == ["[0] one", "[0] two", "[1] one", "[1] two"]
    assert sorted(errors.splitlines()) == ["[0] no end", "[1] no end"]


def test_only_rank_0_reads_stdin(way):
    text = "say(len(sys.stdin.read()))"
    done = subprocess.run([sys.executable, *way, "-n", "2", *program(text)], input="abc", capture_output=True,
                          text=True, timeout=ranks.TIMEOUT_S, check=False)
    assert sorted(done.stdout.split()) == ["0", "3"]


def test_module_and_arguments(tmp_path, way):
    (tmp_path / "job_module.py").write_text("import sys; print(sys.argv[1:])")
    path = f"{tmp_path}:{os.environ['PYTHONPATH']}"
    code, out, errors = ranks.start(*way, "-n", "1", "-m", "job_module", "-n", "5", "--x", PYTHONPATH=path)
    assert (code, out) == (0, "['-n', '5', '--x']\n"), errors


@pytest.mark.parametrize("arguments", [[], ["-n", "2"], ["-n", "0", "x.py"], ["-n", "many", "x.py"],
                                       ["-n", "2", "--timeout", "-1", "x.py"], ["--wrong", "-n", "2", "x.py"]])
def test_bad_command_lines(way, arguments):
    code, _, errors = ranks.start(*way, *arguments)
    assert code == 2 and "usage" in errors


if __name__ == "__main__":
    import torii

    assert torii and time and signal

    def say(value):
        """A line in one piece, whatever the other ranks print."""
        os.write(1, f"{value}\n".encode())

    exec(sys.argv[1])  # the text of program()
